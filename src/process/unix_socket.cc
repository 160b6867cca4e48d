#include "process/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"

namespace muster::process {
namespace {

constexpr absl::Duration kAcceptRetry = absl::Seconds(1);

// A socket path is limited to 107 characters, which a job's folder may exceed. A path through a
// descriptor of the folder is always short enough.
sockaddr_un AddressIn(const base::UniqueFd& folder, const std::string& name) {
  sockaddr_un address{.sun_family = AF_UNIX};
  const std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", name);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

absl::StatusOr<base::UniqueFd> OpenFolder(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  return fd;
}

// The kernel records the credentials of the peer at connect(), so they cannot be forged.
bool IsTrustedPeer(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Serve(
    const std::string& folder, const std::string& name, EventLoop& loop,
    std::function<void(base::UniqueFd)> accepted) {
  MUSTER_ASSIGN_OR_RETURN(const base::UniqueFd directory, OpenFolder(folder));
  const sockaddr_un address = AddressIn(directory, name);
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  const std::string path = base::JoinPath(folder, name);
  ::unlink(path.c_str());
  struct stat info {};
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd.get(), 16) != 0 || ::lstat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  std::unique_ptr<UnixListener> listener(
      new UnixListener(path, std::move(fd), loop, std::move(accepted)));
  listener->device_ = info.st_dev;
  listener->inode_ = info.st_ino;
  MUSTER_RETURN_IF_ERROR(loop.AddFd(listener->fd_.get(), EPOLLIN,
                                    [self = listener.get()](uint32_t) { self->Accept(); }));
  return listener;
}

UnixListener::~UnixListener() {
  loop_.RemoveFd(fd_.get());
  struct stat info {};
  const bool is_mine =
      ::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  if (is_mine) ::unlink(path_.c_str());
}

void UnixListener::Accept() {
  base::UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    exhausted_ = false;
    if (IsTrustedPeer(fd.get())) accepted_(std::move(fd));
    return;
  }
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  if (!std::exchange(exhausted_, true)) {
    std::fprintf(stderr, "%s: cannot accept a connection: %s; retrying every %s\n", path_.c_str(),
                 std::strerror(errno), base::DurationToString(kAcceptRetry).c_str());
  }
  loop_.PauseFd(fd_.get(), kAcceptRetry);
}

absl::StatusOr<base::UniqueFd> ConnectTo(const std::string& folder, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const base::UniqueFd directory, OpenFolder(folder));
  const sockaddr_un address = AddressIn(directory, name);
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no process is listening on ", base::JoinPath(folder, name)));
  }
  return fd;
}

}  // namespace muster::process
