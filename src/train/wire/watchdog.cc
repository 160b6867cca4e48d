#include "train/wire/watchdog.h"

#include "absl/time/clock.h"

namespace muster::train::wire {

Watchdog::Watchdog(Connection& connection)
    : connection_(connection), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Watchdog::~Watchdog() {
  thread_.request_stop();
  absl::MutexLock lock(&mutex_);
  changed_.Signal();
}

void Watchdog::Arm(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = deadline;
  changed_.Signal();
}

bool Watchdog::Disarm() {
  absl::MutexLock lock(&mutex_);
  deadline_ = absl::InfiniteFuture();
  return !expired_;
}

void Watchdog::Run(const std::stop_token& stop) {
  absl::MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    changed_.WaitWithDeadline(&mutex_, deadline_);
    if (absl::Now() < deadline_) continue;
    deadline_ = absl::InfiniteFuture();
    expired_ = true;
    connection_.Cancel();
  }
}

}  // namespace muster::train::wire
