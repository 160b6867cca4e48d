// Unix domain stream sockets with large buffers, for tasks on one machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/file_lock.h"
#include "base/files/unique_fd.h"

namespace muster::train::wire {

// Returns a non-blocking connected socket. Retries until `timeout` while no process listens at
// `path`, which may be longer than sockaddr_un allows.
absl::StatusOr<base::UniqueFd> ConnectUnix(const std::string& path, absl::Duration timeout);

// Listens until it is destroyed.
class UnixListener {
 public:
  // Calls `accept` on the listener's thread for each connection. Returns AlreadyExists if another
  // process listens at `path`; replaces the socket of a dead process.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const std::string& path, std::function<void(base::UniqueFd)> accept);
  ~UnixListener();

 private:
  UnixListener(std::string path, base::FileLock lock, base::UniqueFd socket, base::UniqueFd wake,
               std::function<void(base::UniqueFd)> accept);
  void Run();

  const std::string path_;
  const base::FileLock lock_;
  const base::UniqueFd socket_;
  const base::UniqueFd wake_;
  const std::function<void(base::UniqueFd)> accept_;
  std::jthread thread_;
};

}  // namespace muster::train::wire
