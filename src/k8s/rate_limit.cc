#include "k8s/rate_limit.h"

#include <algorithm>

#include "absl/synchronization/notification.h"

namespace muster::k8s {

bool SleepUnlessStopped(absl::Duration duration, const std::stop_token& stop) {
  absl::Notification stopped;
  const std::stop_callback wake(stop, [&] { stopped.Notify(); });
  return !stopped.WaitForNotificationWithTimeout(duration);
}

RateLimit::RateLimit(double per_second, int burst, const base::Clock& clock)
    : per_second_(per_second),
      burst_(std::max(burst, 1)),
      clock_(clock),
      tokens_(burst_),
      counted_(clock.Now()) {}

absl::Duration RateLimit::Take() {
  if (per_second_ <= 0) return absl::ZeroDuration();
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_.Now();
  tokens_ = std::min(burst_, tokens_ + absl::ToDoubleSeconds(now - counted_) * per_second_);
  counted_ = now;
  tokens_ -= 1;  // negative: callers are waiting
  return tokens_ >= 0 ? absl::ZeroDuration() : absl::Seconds(-tokens_ / per_second_);
}

// Callers that wait behind this one keep their delays; only later ones profit.
void RateLimit::ReturnToken() {
  absl::MutexLock lock(&mutex_);
  tokens_ += 1;
}

absl::Status RateLimit::Wait(absl::Duration timeout, const std::stop_token& stop) {
  const absl::Duration delay = Take();
  if (delay <= absl::ZeroDuration()) return absl::OkStatus();
  if (delay > timeout) {
    ReturnToken();
    return absl::UnavailableError("client-side rate limit exceeded: too many requests are waiting");
  }
  if (SleepUnlessStopped(delay, stop)) return absl::OkStatus();
  ReturnToken();
  return absl::CancelledError("interrupted");
}

}  // namespace muster::k8s
