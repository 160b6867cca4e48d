#include "launch/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace muster {
namespace {

// A socket's path may have 107 characters, a job's folder more: reached through a descriptor of the
// folder, the name is short whatever the folder is called.
sockaddr_un AddressIn(const UniqueFd& folder, const std::string& name) {
  sockaddr_un address{.sun_family = AF_UNIX};
  const std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", name);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

absl::StatusOr<UniqueFd> OpenFolder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  return fd;
}

bool IsSameUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

absl::StatusOr<UniqueFd> ListenAt(const std::string& folder, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd directory, OpenFolder(folder));
  const sockaddr_un address = AddressIn(directory, name);
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return absl::ErrnoToStatus(errno, "socket");
  const std::string path = JoinPath(folder, name);
  ::unlink(path.c_str());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  return listener;
}

UniqueFd AcceptSameUser(const UniqueFd& listener) {
  UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid() && !IsSameUser(fd.get())) fd.Reset();
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& folder, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd directory, OpenFolder(folder));
  const sockaddr_un address = AddressIn(directory, name);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("nobody serves ", JoinPath(folder, name)));
  }
  return fd;
}

}  // namespace muster
