// Credentials that expire.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster {

// Keeps credentials, and looks for others a while before they expire. T has a member `expires` and
// can be compared. Thread-safe; one thread looks, the others wait for it.
template <typename T>
class Renewed {
 public:
  Renewed(std::function<absl::StatusOr<T>()> look, absl::Duration before, const Clock& clock)
      : look_(std::move(look)), before_(before), clock_(clock) {}

  // What looking fails with, once there are none that are still good.
  absl::StatusOr<T> Get() {
    absl::MutexLock lock(&mutex_);
    if (known_.has_value() && known_->expires - before_ > clock_.Now()) return *known_;
    absl::StatusOr<T> found = look_();
    if (found.ok()) known_ = *found;
    const bool good = known_.has_value() && known_->expires > clock_.Now();
    return !found.ok() && good ? *known_ : found;
  }

  // A server does not take them any more: unless there are others by now, Get() looks again.
  void Forget(const T& refused) {
    absl::MutexLock lock(&mutex_);
    if (known_ == refused) known_.reset();
  }

 private:
  const std::function<absl::StatusOr<T>()> look_;
  const absl::Duration before_;
  const Clock& clock_;
  absl::Mutex mutex_;
  std::optional<T> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
