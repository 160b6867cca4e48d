#include "checkpoint/retention.h"

#include <set>

#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using Steps = std::set<int64_t>;

TEST(RetentionTest, KeepsTheNewest) {
  EXPECT_EQ(StepsToDelete({1, 2, 3, 4}, {}, 2, {}), (Steps{1, 2}));
  EXPECT_EQ(StepsToDelete({0, 1}, {}, 1, {}), (Steps{0}));
}

TEST(RetentionTest, DeletesNothingWhileThereAreFewEnough) {
  EXPECT_EQ(StepsToDelete({}, {}, 1, {}), Steps{});
  EXPECT_EQ(StepsToDelete({1, 2}, {}, 2, {}), Steps{});
  EXPECT_EQ(StepsToDelete({1, 2}, {}, 3, {}), Steps{});
}

TEST(RetentionTest, PinnedStepsAreKeptAndDoNotCount) {
  EXPECT_EQ(StepsToDelete({1, 2, 3, 4}, {}, 2, {1}), (Steps{2}));
  EXPECT_EQ(StepsToDelete({1, 2, 3}, {}, 1, {2, 9}), (Steps{1}));
}

TEST(RetentionTest, ADamagedCheckpointDoesNotCountAndExpires) {
  EXPECT_EQ(StepsToDelete({1, 3}, {4}, 2, {}), Steps{});
  EXPECT_EQ(StepsToDelete({2, 3}, {1, 4}, 2, {}), (Steps{1}));
  EXPECT_EQ(StepsToDelete({}, {1, 2, 3}, 1, {}), Steps{});
}

TEST(RetentionTest, AtLeastOneMustBeKept) {
  EXPECT_TRUE(CheckKeep(1).ok());
  EXPECT_EQ(CheckKeep(0).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::checkpoint
