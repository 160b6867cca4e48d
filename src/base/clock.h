// The clock as an interface, so that tests can control time.
#pragma once

#include "absl/time/time.h"

namespace muster::base {

// Thread-safe. Now() never goes backwards within a process.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Returns the process-wide clock: wall time at process start plus the monotonic time since then.
  // Close to the wall clock, yet safe for timeouts when the machine's clock is set. Never
  // destroyed.
  static const Clock& Real();
};

// A clock that moves only on Advance(). Not thread-safe.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time now = absl::FromUnixSeconds(1'700'000'000)) : now_(now) {}
  absl::Time Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_;
};

}  // namespace muster::base
