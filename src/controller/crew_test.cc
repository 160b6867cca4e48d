#include "controller/crew.h"

#include <atomic>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

TEST(CrewTest, EveryPartIsDoneOnce) {
  Crew crew(3);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&crew] {
      for (size_t count = 0; count < 50; ++count) {
        std::vector<std::atomic<int>> done(count);
        crew.Share(count, [&](size_t part) { ++done[part]; });
        for (const auto& times : done) EXPECT_EQ(times, 1);
      }
    });
  }
}

TEST(CrewTest, PartsAreDoneAtOnce) {
  Crew crew(3);
  std::latch all_at_work(4);
  crew.Share(4, [&](size_t) { all_at_work.arrive_and_wait(); });  // for ever, were they fewer
}

TEST(CrewTest, WhoWaitsForTheLastPartHelpsOthers) {
  Crew crew(1);
  std::latch at_work(2), helped(2);
  std::jthread waiting([&] {
    const auto own = std::this_thread::get_id();
    crew.Share(2, [&](size_t) {
      at_work.arrive_and_wait();
      if (std::this_thread::get_id() != own) helped.wait();  // the crew is busy until then
    });
  });
  at_work.wait();
  crew.Share(2, [&](size_t) { helped.arrive_and_wait(); });  // for ever, were nobody there
}

TEST(CrewTest, WithoutAnybodyTheCallerDoesAll) {
  Crew crew(0);
  std::set<size_t> done;
  crew.Share(5, [&](size_t part) { done.insert(part); });
  EXPECT_THAT(done, testing::SizeIs(5));
}

}  // namespace
}  // namespace muster::controller
