#include "train/wire/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace muster::train::wire {
namespace {

// With the system's default of 208 KiB, sender and receiver would alternate every few pages.
constexpr int kSendBuffer = 4 << 20;
constexpr absl::Duration kRetryInterval = absl::Milliseconds(10);

struct Address {
  sockaddr_un name = {};
  base::UniqueFd folder;  // parent of a path longer than the 107 characters of sun_path
};

absl::StatusOr<Address> AddressOf(const std::string& path) {
  Address address;
  std::string short_path = path;
  if (path.size() >= sizeof(address.name.sun_path)) {
    const std::filesystem::path whole(path);
    address.folder =
        base::UniqueFd(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder.valid()) {
      return absl::ErrnoToStatus(errno, whole.parent_path().string());
    }
    short_path =
        absl::StrCat("/proc/self/fd/", address.folder.get(), "/", whole.filename().string());
    if (short_path.size() >= sizeof(address.name.sun_path)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the file name is too long for a socket"));
    }
  }
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, short_path.data(), short_path.size());
  return address;
}

base::UniqueFd NewSocket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void EnlargeSendBuffer(const base::UniqueFd& socket) {
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof(kSendBuffer));
}

const sockaddr* Name(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

}  // namespace

absl::StatusOr<base::UniqueFd> ConnectUnix(const std::string& path, absl::Duration timeout) {
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  MUSTER_ASSIGN_OR_RETURN(const Address address, AddressOf(path));
  base::UniqueFd socket = NewSocket();
  while (::connect(socket.get(), Name(address), sizeof(address.name)) != 0) {
    if (base::Clock::Real().Now() > deadline) return absl::ErrnoToStatus(errno, path);
    absl::SleepFor(kRetryInterval);
  }
  EnlargeSendBuffer(socket);
  // gRPC polls the descriptor, so its reads must not block; connect() above may.
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(
    const std::string& path, std::function<void(base::UniqueFd)> accept) {
  // The kernel releases the lock with its process, even if the socket's file remains.
  MUSTER_ASSIGN_OR_RETURN(std::optional<base::FileLock> lock, base::FileLock::Try(path + ".lock"));
  if (!lock.has_value()) return absl::AlreadyExistsError(path);
  MUSTER_ASSIGN_OR_RETURN(const Address address, AddressOf(path));
  base::UniqueFd socket = NewSocket();
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  ::unlink(path.c_str());
  if (!socket.valid() || !wake.valid() ||
      ::bind(socket.get(), Name(address), sizeof(address.name)) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  return std::unique_ptr<UnixListener>(new UnixListener(path, *std::move(lock), std::move(socket),
                                                        std::move(wake), std::move(accept)));
}

UnixListener::UnixListener(std::string path, base::FileLock lock, base::UniqueFd socket,
                           base::UniqueFd wake, std::function<void(base::UniqueFd)> accept)
    : path_(std::move(path)),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      accept_(std::move(accept)),
      thread_([this] { Run(); }) {}

UnixListener::~UnixListener() {
  const uint64_t once = 1;
  (void)!::write(wake_.get(), &once, sizeof(once));
  thread_.join();
  ::unlink(path_.c_str());
}

void UnixListener::Run() {
  for (;;) {
    pollfd fds[] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    base::UniqueFd connection(
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) {  // e.g. out of descriptors: retry, without spinning
      ::poll(nullptr, 0, 50);
      continue;
    }
    EnlargeSendBuffer(connection);
    accept_(std::move(connection));
  }
}

}  // namespace muster::train::wire
