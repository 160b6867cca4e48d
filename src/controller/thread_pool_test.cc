#include "controller/thread_pool.h"

#include <atomic>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

TEST(ThreadPoolTest, RunsEachPartOnce) {
  ThreadPool pool(3);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&pool] {
      for (size_t count = 0; count < 50; ++count) {
        std::vector<std::atomic<int>> done(count);
        pool.ParallelFor(count, [&](size_t part) { ++done[part]; });
        for (const auto& times : done) EXPECT_EQ(times, 1);
      }
    });
  }
}

TEST(ThreadPoolTest, RunsPartsInParallel) {
  ThreadPool pool(3);
  std::latch all_at_work(4);
  // Blocks forever with fewer threads.
  pool.ParallelFor(4, [&](size_t) { all_at_work.arrive_and_wait(); });
}

TEST(ThreadPoolTest, ACallerThatWaitsRunsPartsOfOthers) {
  ThreadPool pool(1);
  std::latch at_work(2), helped(2);
  std::jthread waiting([&] {
    const auto own = std::this_thread::get_id();
    pool.ParallelFor(2, [&](size_t) {
      at_work.arrive_and_wait();
      if (std::this_thread::get_id() != own) helped.wait();  // the pool is busy until then
    });
  });
  at_work.wait();
  // Blocks forever without a second thread.
  pool.ParallelFor(2, [&](size_t) { helped.arrive_and_wait(); });
}

TEST(ThreadPoolTest, WithoutThreadsTheCallerRunsAll) {
  ThreadPool pool(0);
  std::set<size_t> done;
  pool.ParallelFor(5, [&](size_t part) { done.insert(part); });
  EXPECT_THAT(done, testing::SizeIs(5));
}

}  // namespace
}  // namespace muster::controller
