#include "base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace muster::base {
namespace {

class BootWallClock final : public Clock {
 public:
  absl::Time Now() const override { return wall_start_ + (SinceBoot() - boot_start_); }

 private:
  // CLOCK_BOOTTIME, unlike CLOCK_MONOTONIC, also counts while the machine is suspended.
  static absl::Duration SinceBoot() {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return absl::DurationFromTimespec(time);
  }

  const absl::Time wall_start_ = absl::Now();
  const absl::Duration boot_start_ = SinceBoot();
};

}  // namespace

const Clock& Clock::Real() {
  static const auto* clock = new BootWallClock;
  return *clock;
}

}  // namespace muster::base
