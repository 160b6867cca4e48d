#include "controller/work_queue.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace muster::controller {
namespace {

TEST(WorkQueueTest, AKeyIsQueuedOnce) {
  WorkQueue queue({});
  queue.Add("a");
  queue.Add("b");
  queue.Add("a");
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Get(), "a");
  EXPECT_EQ(queue.Get(), "b");
  EXPECT_EQ(queue.size(), 0);
}

// A key that is added all the time must not starve others.
TEST(WorkQueueTest, IsFifo) {
  base::FakeClock clock;
  WorkQueue queue({}, &clock);
  for (const char* key : {"b", "c", "a", "b"}) {
    queue.Add(key);
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(queue.Get(), "b");
  EXPECT_EQ(queue.Get(), "c");
  EXPECT_EQ(queue.Get(), "a");
}

TEST(WorkQueueTest, AKeyAddedWhileProcessingIsQueuedAfterDone) {
  WorkQueue queue({});
  queue.Add("a");
  ASSERT_EQ(queue.Get(), "a");
  queue.Add("a");
  queue.Add("b");
  EXPECT_EQ(queue.Get(), "b");  // "a" is still being processed
  queue.Done("a");
  EXPECT_EQ(queue.Get(), "a");
}

TEST(WorkQueueTest, TheEarlierTimeWins) {
  WorkQueue queue({});
  queue.AddAfter("a", absl::Hours(1));
  queue.AddAfter("b", absl::Milliseconds(20));
  EXPECT_EQ(queue.Get(), "b");
  queue.Add("a");
  EXPECT_EQ(queue.Get(), "a");
}

TEST(WorkQueueTest, BacksOffExponentially) {
  WorkQueue queue({.first_delay = absl::Milliseconds(20)});
  const absl::Time start = absl::Now();
  for (int i = 0; i < 3; ++i) {
    queue.AddRateLimited("a");
    ASSERT_EQ(queue.Get(), "a");
    queue.Done("a");
  }
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(20 + 40 + 80));
  queue.Forget("a");
  queue.AddRateLimited("a");
  EXPECT_EQ(queue.Get(), "a");
}

TEST(WorkQueueTest, ManyWorkersNeverShareAKey) {
  WorkQueue queue({});
  std::atomic<int> at_work[4] = {};
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        while (const auto key = queue.Get()) {
          const int mine = (*key)[0] - '0';
          EXPECT_EQ(++at_work[mine], 1);
          std::this_thread::yield();
          --at_work[mine];
          ++done;
          queue.Done(*key);
        }
      });
    }
    for (int i = 0; i < 2000; ++i) queue.Add(std::string(1, static_cast<char>('0' + i % 4)));
    while (queue.size() > 0) std::this_thread::yield();
    queue.ShutDown();
  }
  EXPECT_GE(done, 4);
}

TEST(WorkQueueTest, ShutDownEndsGet) {
  WorkQueue queue({});
  std::jthread waiting([&] { EXPECT_EQ(queue.Get(), std::nullopt); });
  queue.ShutDown();
}

}  // namespace
}  // namespace muster::controller
