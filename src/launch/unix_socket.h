// Unix sockets in folders of this user's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "process/event_loop.h"

namespace muster {

// Listens under a name in a folder, which goes with it unless another process has taken it since.
// Not thread-safe.
class UnixListener {
 public:
  // Takes the place of what has the name: a process that may not be the only one holds a FileLock.
  // The folder may have a name of any length. `accepted` gets each connection of this user's, set
  // not to block; those of others are closed. When the process is out of descriptors, connections
  // wait until there are some again, and standard error says so. `loop` must outlive it.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Serve(
      const std::string& folder, const std::string& name, EventLoop& loop,
      std::function<void(UniqueFd)> accepted);
  ~UnixListener();

 private:
  UnixListener(std::string path, UniqueFd fd, EventLoop& loop,
               std::function<void(UniqueFd)> accepted)
      : path_(std::move(path)), fd_(std::move(fd)), loop_(loop), accepted_(std::move(accepted)) {}
  void Accept();

  const std::string path_;
  const UniqueFd fd_;
  dev_t device_ = 0;  // of the file, with its number
  ino_t number_ = 0;
  EventLoop& loop_;
  const std::function<void(UniqueFd)> accepted_;
  bool exhausted_ = false;  // reported, until a connection is accepted again
};

// Unavailable when nobody serves there.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& folder, const std::string& name);

}  // namespace muster
