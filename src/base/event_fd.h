// Wakes another thread that waits in poll() or epoll_wait().
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace muster::base {

// Thread-safe, except for moves.
class EventFd {
 public:
  static absl::StatusOr<EventFd> Create() {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd.valid()) return absl::ErrnoToStatus(errno, "eventfd");
    return EventFd(std::move(fd));
  }

  // The descriptor is readable from Signal() until Clear().
  int get() const { return fd_.get(); }
  void Signal() const {
    const uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof(one));
  }
  void Clear() const {
    uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof(count));
  }

 private:
  explicit EventFd(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster::base
