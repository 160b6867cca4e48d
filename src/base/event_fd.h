// A signal that can be waited for with poll(), from one thread to another.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// Thread-safe but for moving it.
class EventFd {
 public:
  static absl::StatusOr<EventFd> Create() {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd.valid()) return absl::ErrnoToStatus(errno, "eventfd");
    return EventFd(std::move(fd));
  }

  int get() const { return fd_.get(); }  // readable since Signal() was called
  void Signal() const {
    const uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof(one));
  }
  // Takes what was signalled.
  void Clear() const {
    uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof(count));
  }

 private:
  explicit EventFd(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster
