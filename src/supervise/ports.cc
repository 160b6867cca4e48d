#include "supervise/ports.h"

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
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::supervise {
namespace {

// Returns an error that concerns this process, not the port.
absl::Status NoSocket(int error) {
  if (error != EMFILE && error != ENFILE) return absl::ErrnoToStatus(error, "cannot check a port");
  return absl::ResourceExhaustedError(absl::StrCat("cannot reserve a port: ", std::strerror(error),
                                                   "; raise the limit (ulimit -n), or run fewer "
                                                   "tasks"));
}

// Returns AlreadyExists if another process holds the name.
absl::StatusOr<base::UniqueFd> BindName(int port) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return NoSocket(errno);
  sockaddr_un address{.sun_family = AF_UNIX};
  const std::string name = absl::StrCat("muster-port-", port);
  // The first byte of sun_path stays 0, which makes the name abstract.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) return fd;
  if (errno != EADDRINUSE) return NoSocket(errno);
  return absl::AlreadyExistsError(absl::StrCat("port ", port, " belongs to another job"));
}

// Returns AlreadyExists if the port is in use, or PermissionDenied if this user may not bind it.
// With `reuse`, connections in TIME_WAIT do not count, as for servers that set SO_REUSEADDR.
absl::Status TryToBind(int port, bool reuse) {
  const auto number = htons(static_cast<uint16_t>(port));
  const int on = reuse ? 1 : 0;
  const sockaddr_in6 any6{.sin6_family = AF_INET6, .sin6_port = number};
  const sockaddr_in any4{.sin_family = AF_INET, .sin_port = number};
  // By default, binding an IPv6 socket checks IPv4 as well.
  base::UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_ipv6 = fd.valid() || errno != EAFNOSUPPORT;
  if (!has_ipv6) fd = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return NoSocket(errno);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int bound = has_ipv6
                        ? ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any6), sizeof(any6))
                        : ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any4), sizeof(any4));
  if (bound == 0) return absl::OkStatus();
  if (errno == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat("port ", port, " is privileged: this user may not listen there"));
  }
  if (errno != EADDRINUSE) return NoSocket(errno);
  return absl::AlreadyExistsError(
      absl::StrCat("port ", port, " is in use (`ss -ltnp sport = :", port, "` shows by whom)"));
}

void AddListeners(const std::string& path, std::set<int>& ports) {
  const std::string table = base::ReadFile(path, int64_t{256} << 20).value_or("");
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

bool IsPortInUse(int port) { return absl::IsAlreadyExists(TryToBind(port, /*reuse=*/false)); }

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
    // The name comes first: it excludes other Muster processes while the port is checked.
    auto name = BindName(port);
    const absl::Status free = name.ok() ? TryToBind(port, /*reuse=*/false) : name.status();
    if (absl::IsAlreadyExists(free)) continue;
    if (!free.ok()) return free;
    held_.emplace(port, *std::move(name));
    return port;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no free port between ", kFirstPort, " and ", kLastPort));
}

absl::Status PortReservations::ReserveExactly(int port) {
  if (held_.contains(port)) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", port, " is assigned to two tasks of this job"));
  }
  MUSTER_ASSIGN_OR_RETURN(base::UniqueFd name, BindName(port));
  MUSTER_RETURN_IF_ERROR(TryToBind(port, /*reuse=*/true));
  held_.emplace(port, std::move(name));
  return absl::OkStatus();
}

}  // namespace muster::supervise
