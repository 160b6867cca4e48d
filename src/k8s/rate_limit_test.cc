#include "k8s/rate_limit.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace muster::k8s {
namespace {

TEST(RateLimitTest, ABurstThenAtTheRate) {
  base::FakeClock clock;
  RateLimit limit(10, 3, clock);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take(), absl::ZeroDuration());
  EXPECT_EQ(limit.Take(), absl::Milliseconds(100));
  EXPECT_EQ(limit.Take(), absl::Milliseconds(200));
  clock.Advance(absl::Milliseconds(300));  // two tokens of debt, and one more
  EXPECT_EQ(limit.Take(), absl::ZeroDuration());
  EXPECT_GT(limit.Take(), absl::ZeroDuration());
  clock.Advance(absl::Hours(1));  // the bucket holds at most the burst
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take(), absl::ZeroDuration());
  EXPECT_GT(limit.Take(), absl::ZeroDuration());
}

TEST(RateLimitTest, NoLimit) {
  RateLimit limit(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limit.Take(), absl::ZeroDuration());
}

TEST(RateLimitTest, GivingUpUsesNoToken) {
  RateLimit limit(0.001, 1);
  EXPECT_TRUE(limit.Wait(absl::ZeroDuration(), {}).ok());
  EXPECT_TRUE(absl::IsUnavailable(limit.Wait(absl::Seconds(1), {})));
  std::stop_source source;
  const std::jthread stopper([&] { source.request_stop(); });
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(absl::IsCancelled(limit.Wait(absl::Hours(10), source.get_token())));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  EXPECT_LT(limit.Take(), absl::Seconds(1001));
}

}  // namespace
}  // namespace muster::k8s
