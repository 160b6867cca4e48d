// The time, as something that can be replaced in a test.
#pragma once

#include "absl/time/time.h"

namespace muster {

// Thread-safe. Now() never goes backwards within a process.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Wall time at the process's start plus steady time since: close to the wall clock, and safe to
  // compute time-outs with when somebody sets the machine's clock. Never destroyed.
  static const Clock& Real();
};

// A clock that moves only when told to. Not thread-safe.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time now = absl::FromUnixSeconds(1'700'000'000)) : now_(now) {}
  absl::Time Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_;
};

}  // namespace muster
