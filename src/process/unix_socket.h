// Unix domain sockets that only this user (and root) may connect to.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "process/event_loop.h"

namespace muster::process {

// Listens on a socket file in a folder. The destructor removes the file, unless another process has
// replaced it. Not thread-safe.
class UnixListener {
 public:
  // Replaces an existing file of that name; callers that need exclusion hold a FileLock. The path
  // of the folder may have any length. `accepted` receives each connection of this user or root,
  // set to non-blocking; others are closed. While the process is out of descriptors, connections
  // wait, and a message goes to stderr. `loop` must outlive the listener.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Serve(
      const std::string& folder, const std::string& name, EventLoop& loop,
      std::function<void(base::UniqueFd)> accepted);
  ~UnixListener();

 private:
  UnixListener(std::string path, base::UniqueFd fd, EventLoop& loop,
               std::function<void(base::UniqueFd)> accepted)
      : path_(std::move(path)), fd_(std::move(fd)), loop_(loop), accepted_(std::move(accepted)) {}
  void Accept();

  const std::string path_;
  const base::UniqueFd fd_;
  dev_t device_ = 0;  // identity of the socket file
  ino_t inode_ = 0;
  EventLoop& loop_;
  const std::function<void(base::UniqueFd)> accepted_;
  bool exhausted_ = false;  // a shortage was reported; cleared by the next accepted connection
};

// Connects to a UnixListener. Returns Unavailable if no process is listening.
absl::StatusOr<base::UniqueFd> ConnectTo(const std::string& folder, const std::string& name);

}  // namespace muster::process
