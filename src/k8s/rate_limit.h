// Client-side rate limit.
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::k8s {

// Sleeps for `duration`. Returns false immediately when `stop` is requested.
bool SleepUnlessStopped(absl::Duration duration, const std::stop_token& stop);

// A token bucket that holds at most `burst` tokens and refills at `per_second`. Thread-safe.
class RateLimit {
 public:
  // There is no limit if `per_second` is not positive.
  RateLimit(double per_second, int burst, const base::Clock& clock = base::Clock::Real());

  // Reserves a token and returns how long the caller must wait for it.
  absl::Duration Take();
  // Takes a token, waiting for it if necessary. Returns Unavailable if that would take longer than
  // `timeout`, and Cancelled if `stop` is requested; neither uses a token.
  absl::Status Wait(absl::Duration timeout, const std::stop_token& stop);

 private:
  void ReturnToken();

  const double per_second_;
  const double burst_;
  const base::Clock& clock_;
  absl::Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_);
  absl::Time counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::k8s
