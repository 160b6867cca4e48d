#include "train/ps/claims.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Claims, GrantsNoMoreStepsThanAreLeft) {
  Claims claims({0, 0, 0}, 0, 2, std::nullopt);
  for (int rank = 0; rank < 3; ++rank) claims.Request(rank);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0, 1));
  EXPECT_THAT(claims.TakeDone(), IsEmpty());
  EXPECT_THAT(claims.WaitsFor(), ElementsAre(0, 1));
  claims.Complete(0);
  EXPECT_THAT(claims.TakeDone(), IsEmpty());
  claims.Complete(1);
  EXPECT_THAT(claims.TakeDone(), ElementsAre(2));
  EXPECT_EQ(claims.completed(), 2);
}

TEST(Claims, GrantsAnUncompletedStepAgain) {
  Claims claims({0, 0}, 0, 1, std::nullopt);
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
  claims.Request(1);
  EXPECT_THAT(claims.TakeGrants(), IsEmpty());
  claims.Leave(0);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(1));
  EXPECT_FALSE(claims.IsComputing(0));
  EXPECT_TRUE(claims.IsComputing(1));
}

TEST(Claims, ASecondRequestGetsNoSecondGrant) {
  Claims claims({0}, 0, 5, std::nullopt);
  claims.Request(0);
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), IsEmpty());
}

TEST(Claims, TheLimitOnlyDecreases) {
  Claims claims({0}, 3, 10, std::nullopt);
  claims.SetLimit(20);
  claims.SetLimit(4);
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
  claims.Complete(0);
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), IsEmpty());
  EXPECT_THAT(claims.TakeDone(), ElementsAre(0));
}

TEST(Claims, WaitingTasksAreDoneWhenTheOthersComplete) {
  Claims claims({0, 0}, 0, 10, std::nullopt);
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
  claims.SetLimit(0);
  claims.Request(1);
  EXPECT_THAT(claims.TakeDone(), IsEmpty());
  EXPECT_THAT(claims.WaitsFor(), ElementsAre(0));
  claims.Complete(0);
  EXPECT_THAT(claims.TakeDone(), ElementsAre(1));
}

TEST(Claims, WaitsForTheSlowest) {
  Claims claims({0, 0, 0}, 0, 100, 1);
  EXPECT_THAT(claims.WaitsFor(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    claims.Request(0);
    EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
    claims.Complete(0);
  }
  claims.Request(0);
  EXPECT_THAT(claims.TakeGrants(), IsEmpty());
  EXPECT_THAT(claims.WaitsFor(), ElementsAre(1, 2));
  claims.Request(1);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(1));
  claims.Complete(1);
  EXPECT_THAT(claims.WaitsFor(), ElementsAre(2));
  claims.Request(2);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(2));
  claims.Complete(2);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(0));
  EXPECT_THAT(claims.WaitsFor(), IsEmpty());
}

TEST(Claims, WaitsForNoTaskWithoutARequest) {
  Claims claims({5, 0}, 5, 100, 1);
  EXPECT_THAT(claims.WaitsFor(), IsEmpty());
  claims.Request(1);
  EXPECT_THAT(claims.TakeGrants(), ElementsAre(1));
  EXPECT_THAT(claims.WaitsFor(), IsEmpty());
}

// Tasks join, compute and leave without notice, in any order.
class ClaimsProperty : public testing::TestWithParam<std::optional<int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Staleness, ClaimsProperty,
                         testing::Values(std::nullopt, std::optional<int64_t>(0),
                                         std::optional<int64_t>(3)));

TEST_P(ClaimsProperty, MakesExactlyTheStepsOfTheJob) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int tasks = 1 + static_cast<int>(random() % 5);
    const int64_t limit = random() % 60;
    Claims claims(std::vector<int64_t>(tasks, 0), 0, limit, GetParam());
    std::vector<bool> computing(tasks, false);
    std::vector<bool> done_tasks(tasks, false);
    int64_t completed = 0;
    for (int i = 0; i < 100'000 &&
                    !std::all_of(done_tasks.begin(), done_tasks.end(), [](bool b) { return b; });
         ++i) {
      const int rank = static_cast<int>(random() % tasks);
      if (random() % 8 == 0) {
        claims.Leave(rank);
        computing[rank] = false;
      } else if (computing[rank]) {
        claims.Complete(rank);
        computing[rank] = false;
        ++completed;
      } else {
        claims.Request(rank);
      }
      const auto slowest = std::min_element(claims.cursors().begin(), claims.cursors().end());
      for (const int granted : claims.TakeGrants()) {
        ASSERT_FALSE(computing[granted]);
        computing[granted] = true;
        if (GetParam()) {
          ASSERT_LE(claims.cursors()[granted] - *slowest, *GetParam());
        }
      }
      for (const int done : claims.TakeDone()) done_tasks[done] = true;
      ASSERT_LE(completed + std::count(computing.begin(), computing.end(), true), limit);
    }
    EXPECT_EQ(completed, limit) << "seed " << seed;
    EXPECT_EQ(claims.completed(), limit);
    EXPECT_TRUE(std::all_of(done_tasks.begin(), done_tasks.end(), [](bool b) { return b; }))
        << seed;
  }
}

}  // namespace
}  // namespace muster::train
