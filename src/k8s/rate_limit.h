// How many requests a client sends.
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::k8s {

// Sleeps; false, at once, when `stop` is requested meanwhile.
bool SleepUnlessStopped(absl::Duration duration, const std::stop_token& stop);

// A bucket of tokens: `burst` of them at most, `per_second` more come. Thread-safe.
class RateLimit {
 public:
  // No limit when `per_second` is not positive.
  RateLimit(double per_second, int burst, const Clock& clock = Clock::Real());

  // Takes one now, which may not be there yet: how long the caller must wait for it.
  absl::Duration Take();
  // Takes one and waits for it. Unavailable when that would take longer than `patience`, Cancelled
  // when told to stop; the token is then not used up.
  absl::Status Wait(absl::Duration patience, const std::stop_token& stop);

 private:
  void GiveBack();

  const double per_second_;
  const double burst_;
  const Clock& clock_;
  absl::Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_);
  absl::Time counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::k8s
