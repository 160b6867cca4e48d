#include "train/core/waiting.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

std::atomic<int64_t> wall_shift_seconds{0};

}  // namespace

// Replaces libc's clock_gettime in this test program: a wall clock that can be set.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += wall_shift_seconds.load();
  return result;
}

namespace muster::train {
namespace {

// Sets the wall clock forward or back within a scope.
class WallClockStep {
 public:
  explicit WallClockStep(absl::Duration by) { wall_shift_seconds = absl::ToInt64Seconds(by); }
  ~WallClockStep() { wall_shift_seconds = 0; }
};

TEST(WaitingTest, SettingTheClockForwardDoesNotEndIt) {
  (void)base::Clock::Real().Now();
  std::vector<std::string> lines;
  Waiting waiting(absl::Seconds(60), absl::Seconds(60),
                  [&](const std::string& line) { lines.push_back(line); });
  const absl::Time before = absl::Now();
  const WallClockStep step(absl::Hours(2));
  ASSERT_GT(absl::Now() - before, absl::Hours(1)) << "the step must reach absl::Now";
  EXPECT_EQ(waiting.Pause("worker:1"), absl::OkStatus());
  EXPECT_GT(waiting.left(), absl::Seconds(30));
  EXPECT_THAT(lines, testing::IsEmpty());
}

TEST(WaitingTest, SettingTheClockBackDoesNotProlongIt) {
  (void)base::Clock::Real().Now();
  Waiting waiting(absl::Milliseconds(50), absl::Seconds(60), [](const std::string&) {});
  const WallClockStep step(-absl::Hours(2));
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = waiting.Pause("worker:1");
  EXPECT_EQ(status, absl::DeadlineExceededError("worker:1"));
  EXPECT_EQ(waiting.left(), absl::ZeroDuration());
}

TEST(WaitingTest, NamesTheMissingPeer) {
  EXPECT_EQ(TimedOut(absl::Minutes(5), "worker:1").message(),
            "timed out after 5m waiting for worker:1");
  EXPECT_EQ(NoAnswer(absl::Milliseconds(4991.5)).message(), "no response within 5s");
  EXPECT_EQ(LostContact(absl::Minutes(30), "ps:0 (no response within 5s)").message(),
            "lost contact with ps:0 (no response within 5s); timed out after 30m");
  EXPECT_EQ(LostContact(absl::Minutes(30), "worker:1").message(),
            "timed out after 30m waiting for worker:1");
}

}  // namespace
}  // namespace muster::train
