#include "platform/ssh/connectivity.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::Each;
using testing::Le;

TEST(ForEachTest, LimitsConcurrency) {
  std::atomic<int> now = 0, most = 0;
  std::vector<int> done(50);
  const absl::Status status = ForEach(
      done.size(),
      [&](size_t i) {
        const int mine = ++now;
        for (int before = most; before < mine && !most.compare_exchange_weak(before, mine);) {
        }
        absl::SleepFor(absl::Milliseconds(1));
        --now;
        ++done[i];
        return absl::OkStatus();
      },
      3);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(most.load(), Le(3));
  EXPECT_THAT(done, Each(1));
}

TEST(ForEachTest, EveryErrorIsReported) {
  const absl::Status status = ForEach(4, [](size_t i) {
    return i % 2 == 0 ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("host", i));
  });
  EXPECT_EQ(status, absl::NotFoundError("host1\nhost3"));
}

}  // namespace
}  // namespace muster::ssh
