#include "launch/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"

namespace muster {
namespace {

// Invalid when another process has it.
UniqueFd HoldName(int port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  sockaddr_un address{.sun_family = AF_UNIX};
  const std::string name = absl::StrCat("muster-port-", port);
  // The first byte of sun_path stays 0: an abstract name.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fd.Reset();
  return fd;
}

// `reuse`: as servers bind, so that connections which the last one left in TIME_WAIT do not count.
bool CanBind(int port, bool reuse) {
  const auto number = htons(static_cast<uint16_t>(port));
  const int on = reuse ? 1 : 0;
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.valid()) {
    const sockaddr_in6 any{.sin6_family = AF_INET6, .sin6_port = number};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0;
  }
  fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // a machine without IPv6
  const sockaddr_in any{.sin_family = AF_INET, .sin_port = number};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0;
}

void AddListeners(const std::string& path, std::set<int>& ports) {
  const std::string table = ReadFile(path, int64_t{256} << 20).value_or("");
  constexpr absl::string_view kListen = "0A";
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    if (fields.size() <= 3 || fields[3] != kListen) continue;
    uint32_t port = 0;  // "0100007F:08AE": address and port in hexadecimal
    const absl::string_view local = fields[1];
    if (absl::SimpleHexAtoi(local.substr(local.rfind(':') + 1), &port))
      ports.insert(static_cast<int>(port));
  }
}

}  // namespace

bool IsPortInUse(int port) { return !CanBind(port, /*reuse=*/false); }

std::set<int> ListeningPorts() {
  std::set<int> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) AddListeners(table, ports);
  return ports;
}

absl::StatusOr<int> PortReservations::Reserve() {
  constexpr int kCount = kLastPort - kFirstPort + 1;
  std::random_device random;
  const int start = static_cast<int>(random() % kCount);
  for (int i = 0; i < kCount; ++i) {
    const int port = kFirstPort + (start + i) % kCount;
    if (held_.contains(port)) continue;
    UniqueFd name = HoldName(port);
    if (!name.valid()) continue;
    if (IsPortInUse(port)) continue;
    held_.emplace(port, std::move(name));
    return port;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no free port between ", kFirstPort, " and ", kLastPort));
}

absl::Status PortReservations::ReserveExactly(int port) {
  if (held_.contains(port)) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", port, " is given to two tasks of this job"));
  }
  UniqueFd name = HoldName(port);
  if (!name.valid()) {
    return absl::AlreadyExistsError(absl::StrCat("port ", port, " belongs to another job"));
  }
  if (!CanBind(port, /*reuse=*/true)) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", port, " is in use (`ss -ltnp sport = :", port, "` shows by whom)"));
  }
  held_.emplace(port, std::move(name));
  return absl::OkStatus();
}

}  // namespace muster
