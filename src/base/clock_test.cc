#include "base/clock.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(ClockTest, RealClockIsCloseToTheWallClockAndMonotonic) {
  absl::Time previous = Clock::Real().Now();
  EXPECT_LT(absl::AbsDuration(previous - absl::Now()), absl::Seconds(5));
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = Clock::Real().Now();
    EXPECT_GE(now, previous);
    previous = now;
  }
}

TEST(ClockTest, FakeClockMovesOnlyOnAdvance) {
  FakeClock clock;
  const absl::Time before = clock.Now();
  EXPECT_EQ(clock.Now(), before);
  clock.Advance(absl::Minutes(3));
  EXPECT_EQ(clock.Now() - before, absl::Minutes(3));
}

}  // namespace
}  // namespace muster::base
