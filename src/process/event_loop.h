// A single-threaded event loop over file descriptors and signals (epoll).
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"

namespace muster::process {

// Not thread-safe. Handlers may add and remove descriptors, including their own. The caller owns
// the descriptors and must remove them before closing them.
class EventLoop {
 public:
  using FdHandler = std::function<void(uint32_t events)>;
  using SignalHandler = std::function<void(int signal)>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  absl::Status AddFd(int fd, uint32_t events, FdHandler handler);
  void RemoveFd(int fd);
  // Ignores events of `fd` for `duration`. For a descriptor that stays ready although nothing can
  // be done about it now, which would make Wait() spin. REQUIRES: `fd` was added. EPOLLERR and
  // EPOLLHUP, which epoll always reports, are still delivered.
  void PauseFd(int fd, absl::Duration duration);

  // Blocks these signals in the calling thread and passes them to `handler` instead. Call once,
  // before other threads start.
  absl::Status HandleSignals(const std::vector<int>& signals, SignalHandler handler);

  // Waits for events, at most `timeout`, and calls their handlers.
  absl::Status Wait(absl::Duration timeout);

 private:
  explicit EventLoop(base::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  base::UniqueFd epoll_;
  base::UniqueFd signals_;
  void ResumeFds(absl::Time now);

  struct Registration {
    uint32_t events = 0;
    std::shared_ptr<FdHandler> handler;
  };
  std::unordered_map<int, Registration> fds_;
  std::map<int, absl::Time> paused_;  // fd -> end of its pause
};

}  // namespace muster::process
