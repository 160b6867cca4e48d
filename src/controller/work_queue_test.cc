#include "controller/work_queue.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace muster::controller {
namespace {

TEST(WorkQueueTest, AKeyWaitsOnce) {
  WorkQueue queue({});
  queue.Add("a");
  queue.Add("b");
  queue.Add("a");
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Take(), "a");
  EXPECT_EQ(queue.Take(), "b");
  EXPECT_EQ(queue.size(), 0);
}

// So that one about which there is always news keeps nobody waiting.
TEST(WorkQueueTest, InTheOrderInWhichTheyCome) {
  FakeClock clock;
  WorkQueue queue({}, &clock);
  for (const char* key : {"b", "c", "a", "b"}) {
    queue.Add(key);
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(queue.Take(), "b");
  EXPECT_EQ(queue.Take(), "c");
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, WhatIsAddedMeanwhileComesAfterwards) {
  WorkQueue queue({});
  queue.Add("a");
  ASSERT_EQ(queue.Take(), "a");
  queue.Add("a");
  queue.Add("b");
  EXPECT_EQ(queue.Take(), "b");  // nobody else works on a
  queue.Done("a");
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, TheEarlierTimeWins) {
  WorkQueue queue({});
  queue.AddAfter("a", absl::Hours(1));
  queue.AddAfter("b", absl::Milliseconds(20));
  EXPECT_EQ(queue.Take(), "b");
  queue.Add("a");
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, FailuresAreRepeatedLaterAndLater) {
  WorkQueue queue({.first_delay = absl::Milliseconds(20)});
  const absl::Time start = absl::Now();
  for (int i = 0; i < 3; ++i) {
    queue.AddAfterFailure("a");
    ASSERT_EQ(queue.Take(), "a");
    queue.Done("a");
  }
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(20 + 40 + 80));
  queue.Forget("a");
  queue.AddAfterFailure("a");
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, ManyWorkersNeverShareAKey) {
  WorkQueue queue({});
  std::atomic<int> at_work[4] = {};
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        while (const auto key = queue.Take()) {
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
    queue.Close();
  }
  EXPECT_GE(done, 4);
}

TEST(WorkQueueTest, ClosingEndsTheWaiting) {
  WorkQueue queue({});
  std::jthread waiting([&] { EXPECT_EQ(queue.Take(), std::nullopt); });
  queue.Close();
}

}  // namespace
}  // namespace muster::controller
