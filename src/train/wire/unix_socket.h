// Stream sockets in the file system, with room for much: tasks of one machine talk through them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace muster::train::wire {

// Waits until somebody listens there. The socket does not block. A path may be longer than the
// system's addresses are.
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path, absl::Duration timeout);

// Listens until it is destroyed.
class UnixListener {
 public:
  // `accept` is called in a thread of its own. AlreadyExists when somebody listens there; what a
  // dead process left is replaced.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(const std::string& path,
                                                             std::function<void(UniqueFd)> accept);
  ~UnixListener();

 private:
  UnixListener(std::string path, UniqueFd lock, UniqueFd socket, UniqueFd wake,
               std::function<void(UniqueFd)> accept);
  void Run();

  const std::string path_;
  const UniqueFd lock_;
  const UniqueFd socket_;
  const UniqueFd wake_;
  const std::function<void(UniqueFd)> accept_;
  std::jthread thread_;
};

}  // namespace muster::train::wire
