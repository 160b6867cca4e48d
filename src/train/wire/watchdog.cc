#include "train/wire/watchdog.h"

#include "base/clock.h"

namespace muster::train::wire {

Watchdog::Watchdog(Connection& connection)
    : connection_(connection), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Watchdog::~Watchdog() = default;

void Watchdog::Arm(absl::Time deadline) {
  const absl::Duration left = deadline - base::Clock::Real().Now();
  const std::lock_guard lock(mutex_);
  deadline_ = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(left);
  changed_.notify_one();
}

bool Watchdog::Disarm() {
  const std::lock_guard lock(mutex_);
  deadline_ = kNever;
  return !expired_;
}

void Watchdog::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const SteadyTime deadline = deadline_;
    const auto changed = [&] { return deadline_ != deadline; };
    if (deadline == kNever) {
      changed_.wait(lock, stop, changed);
      continue;
    }
    if (changed_.wait_until(lock, stop, deadline, changed) || stop.stop_requested()) continue;
    deadline_ = kNever;
    expired_ = true;
    // With the mutex held: once Disarm() has returned true, no expiry of the past can cancel the
    // stream.
    connection_.Cancel();
  }
}

}  // namespace muster::train::wire
