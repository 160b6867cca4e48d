#include "platform/vertex/agent.h"

#include <sys/utsname.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "platform/agent_program.h"
#include "platform/vertex/mounted_buckets.h"
#include "platform/vertex/package.h"

namespace muster::vertex {
namespace {

constexpr absl::string_view kMachine = "x86_64";  // of all machine types of custom training

// $1 is the program in the mounted bucket, $2 its hash; the rest are arguments of `vertex-task`.
// The copy is verified, not the original, which others may replace meanwhile. $(…) is avoided
// because the service may expand variables of that form.
constexpr char kScript[] = R"(fail() { echo "muster: $*" >&2; exit 1; }
program=$1 sha256=$2
shift 2
test -d /gcs || fail "/gcs is missing: Vertex AI mounts the buckets of the project there; use a machine type on which it supports Cloud Storage FUSE"
test -f "$program" || fail "$program is missing or unreadable; grant the job's service account roles/storage.objectViewer for the bucket, or submit the job again"
for tool in mktemp cp chmod sha256sum; do
  command -v $tool >/dev/null || fail "the image has no $tool; use one with coreutils or busybox"
done
folder=`mktemp -d` && cp "$program" "$folder/muster-agent" && chmod 700 "$folder/muster-agent" ||
  fail "cannot copy $program to ${TMPDIR:-/tmp}; set TMPDIR to a folder with free space"
(cd "$folder" && echo "$sha256  muster-agent" | sha256sum -c >/dev/null 2>&1) ||
  fail "$program was altered after the job was submitted: its hash differs; it is not run. Check who may write to the bucket, and submit the job again with --rebuild"
exec "$folder/muster-agent" vertex-task "$@")";

storage::Url AgentUrl(const std::string& bucket, const std::string& sha256) {
  return PackageFolder(bucket).Child(absl::StrCat(sha256, "-muster-agent"));
}

}  // namespace

bool RunsTrainer(const job::RoleSpec& role) {
  if (role.command.empty()) return role.server != job::Server::kTensorFlow;
  return role.command.front() == "muster-trainer";
}

bool NeedsAgent(const job::JobSpec& spec) {
  return !std::all_of(spec.roles.begin(), spec.roles.end(), RunsTrainer);
}

absl::StatusOr<std::string> FindAgent(const std::string& muster) {
  MUSTER_ASSIGN_OR_RETURN(const platform::AgentProgram agent, platform::FindAgentProgram(muster));
  utsname here{};
  ::uname(&here);
  if (here.machine != kMachine) {
    return absl::FailedPreconditionError(
        absl::StrCat("this muster is for ", here.machine, ", but the machines of Vertex AI are ",
                     kMachine, "; submit the job from a machine of that architecture"));
  }
  return agent.path;
}

absl::StatusOr<std::string> SendAgent(storage::Storage& storage, const std::string& bucket,
                                      const std::string& path, bool again) {
  MUSTER_ASSIGN_OR_RETURN(const std::string content, base::ReadFile(path));
  const std::string sha256 = base::Sha256Hex(content);
  const storage::Url url = AgentUrl(bucket, sha256);
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  MUSTER_RETURN_IF_ERROR(SendOnce(*files, url, again, [&](storage::IfExists if_exists) {
                           return storage::WriteWhole(*files, url, content, if_exists);
                         }).status());
  return sha256;
}

ContainerCommand StartByAgent(const std::string& bucket, const std::string& sha256,
                              const std::vector<std::string>& arguments) {
  ContainerCommand line{.command = {"/bin/sh", "-c", kScript, "muster"},
                        .args = {MountedUrl(AgentUrl(bucket, sha256)).name, sha256}};
  line.args.insert(line.args.end(), arguments.begin(), arguments.end());
  return line;
}

}  // namespace muster::vertex
