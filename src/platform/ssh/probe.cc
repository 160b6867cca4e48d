#include "platform/ssh/probe.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "process/run.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kResolveTimeout = absl::Seconds(10);

// Returns a socket that listens on all addresses of this machine.
absl::StatusOr<base::UniqueFd> ListenAt(int port) {
  const auto number = htons(static_cast<uint16_t>(port));
  const int off = 0;
  const sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = number};
  const sockaddr_in v4{.sin_family = AF_INET, .sin_port = number};
  base::UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_v6 = fd.valid();
  if (has_v6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  } else {
    fd =
        base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // the kernel has no IPv6
  }
  const int bound = has_v6 ? ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6))
                           : ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  // Connections are never accepted and stay in the backlog, which must hold one per host.
  if (bound != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at port ", port));
  }
  return fd;
}

// Returns a numeric address of the host, or "" if its name cannot be resolved. Uses getent: this
// program is linked statically and cannot load the host's NSS modules.
std::string Resolve(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> numbers;
  if (::inet_pton(AF_INET, host.c_str(), numbers.data()) == 1 ||
      ::inet_pton(AF_INET6, host.c_str(), numbers.data()) == 1) {
    return host;
  }
  const auto answer = process::Run(
      {.argv = {"getent", "ahosts", host}, .env = process::CurrentEnvironment()}, kResolveTimeout);
  if (!answer.ok() || !answer->exit.ok()) return "";
  return answer->output.substr(0, answer->output.find_first_of(" \t\n"));
}

absl::StatusOr<base::UniqueFd> StartConnect(const std::string& host, int port) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<uint16_t>(port))};
  const bool is_v4 = ::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4) ::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr);
  base::UniqueFd fd(
      ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result = is_v4
                         ? ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4))
                         : ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
  if (result != 0 && errno != EINPROGRESS) return absl::ErrnoToStatus(errno, "connect");
  return fd;
}

// Returns "" on success, else the reason for the failure.
std::string TryOne(const std::string& address, absl::Duration timeout) {
  const auto parsed = cluster::ParseAddress(address);
  if (!parsed.has_value()) return "no address";
  const std::string host = Resolve(parsed->host);
  if (host.empty()) return absl::StrCat("the name '", parsed->host, "' cannot be resolved there");
  const auto fd = StartConnect(host, parsed->port);
  if (!fd.ok()) return std::string(fd.status().message());
  pollfd waits{fd->get(), POLLOUT, 0};
  if (::poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return "no answer";
  }
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "" : std::string(absl::ErrnoToStatus(error, "connect").message());
}

}  // namespace

absl::Status Listener::Add(int port) {
  MUSTER_ASSIGN_OR_RETURN(base::UniqueFd socket, ListenAt(port));
  sockets_.push_back(std::move(socket));
  ports_.push_back(port);
  return absl::OkStatus();
}

absl::StatusOr<Listener> Listener::Open(const std::vector<int>& fixed) {
  Listener listener;
  MUSTER_ASSIGN_OR_RETURN(const int picked, listener.reservations_.Reserve());
  MUSTER_RETURN_IF_ERROR(listener.Add(picked));
  for (const int port : fixed) {
    // A port in use is reported later, when the task reserves it.
    if (listener.reservations_.ReserveExactly(port).ok()) listener.Add(port).IgnoreError();
  }
  return listener;
}

std::vector<std::string> TryToReach(const std::vector<std::string>& addresses,
                                    absl::Duration timeout) {
  std::vector<std::string> results(addresses.size());
  std::vector<std::jthread> threads;
  threads.reserve(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = TryOne(addresses[i], timeout); });
  }
  for (std::jthread& thread : threads) thread.join();
  return results;
}

}  // namespace muster::ssh
