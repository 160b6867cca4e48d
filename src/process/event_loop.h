// Waits for file descriptors and signals in one thread.
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
#include "base/unique_fd.h"

namespace muster {

// Not thread-safe. A handler may add and remove descriptors, its own too. Descriptors stay the
// caller's and must be removed before they are closed.
class EventLoop {
 public:
  using FdHandler = std::function<void(uint32_t events)>;
  using SignalHandler = std::function<void(int signal)>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  absl::Status AddFd(int fd, uint32_t events, FdHandler handler);
  void RemoveFd(int fd);
  // Does not look at `fd` for `duration`. For one that stays ready though nothing can be done about
  // it now: it would keep Wait() from waiting.
  void PauseFd(int fd, absl::Duration duration);

  // Blocks these signals for the process and hands them to `handler` instead. Call once.
  absl::Status HandleSignals(const std::vector<int>& signals, SignalHandler handler);

  // Waits until something happens or `timeout` has passed, and calls the handlers of all that did.
  absl::Status Wait(absl::Duration timeout);

 private:
  explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  UniqueFd epoll_;
  UniqueFd signals_;
  void ResumeFds(absl::Time now);

  struct Registration {
    uint32_t events = 0;
    std::shared_ptr<FdHandler> handler;
  };
  std::unordered_map<int, Registration> fds_;
  std::map<int, absl::Time> paused_;  // until when
};

}  // namespace muster
