#include "process/tree_counter.h"

#include "gtest/gtest.h"

namespace muster::process {
namespace {

using Entry = TreeCounter::Entry;

Entry Root(int64_t own, int64_t waited) {
  return {.pid = 10, .start_ticks = 1, .value = own + waited, .from_children = waited};
}
Entry Child(pid_t pid, int64_t value, uint64_t start_ticks = 2) {
  return {.pid = pid, .start_ticks = start_ticks, .parent = 10, .value = value};
}

TEST(TreeCounterTest, SumsAllProcesses) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  EXPECT_EQ(counter.Update({Root(6, 0), Child(11, 9), Child(12, 1)}), 16);
}

TEST(TreeCounterTest, AChildThatTheParentWaitedForCountsOnce) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  // The child used 2 more before it ended.
  EXPECT_EQ(counter.Update({Root(5, 9)}), 14);
  EXPECT_EQ(counter.Update({Root(6, 9)}), 15);
}

TEST(TreeCounterTest, AChildThatNobodyWaitedForStillCounts) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  EXPECT_EQ(counter.Update({Root(5, 0)}), 12);
  EXPECT_EQ(counter.Update({Root(8, 0)}), 15);  // not hidden by the lost child
}

TEST(TreeCounterTest, AParentReadBeforeItWaitedIsCorrectedLater) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  EXPECT_EQ(counter.Update({Root(5, 0)}), 12);  // the child has ended after the parent was read
  EXPECT_EQ(counter.Update({Root(5, 7)}), 12);
  EXPECT_EQ(counter.Update({Root(6, 7)}), 13);
}

TEST(TreeCounterTest, AChildReadBeforeItsParentInheritedItDoesNotMakeTheSumDecrease) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  const int64_t twice = counter.Update({Root(5, 7), Child(11, 7)});
  EXPECT_GE(counter.Update({Root(5, 7)}), twice);
}

TEST(TreeCounterTest, AReusedPidIsAnotherProcess) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 100, /*start_ticks=*/2)}), 105);
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 1, /*start_ticks=*/3)}), 106);
  EXPECT_EQ(counter.Update({Root(5, 101), Child(11, 1, /*start_ticks=*/4)}), 107);
}

TEST(TreeCounterTest, GrandchildrenAreInheritedThroughAParentThatEnds) {
  TreeCounter counter;
  Entry grandchild = Child(12, 3);
  grandchild.parent = 11;
  EXPECT_EQ(counter.Update({Root(0, 0), Child(11, 2), grandchild}), 5);
  EXPECT_EQ(counter.Update({Root(0, 6)}), 6);
}

TEST(TreeCounterTest, KeepsWhatEndedWithTheWholeTree) {
  TreeCounter counter;
  EXPECT_EQ(counter.Update({Root(5, 0), Child(11, 7)}), 12);
  EXPECT_EQ(counter.Update({}), 12);
}

TEST(TreeCounterTest, SurvivesParentsThatFormALoop) {
  TreeCounter counter;
  const Entry a{.pid = 1, .start_ticks = 1, .parent = 2, .value = 1};
  const Entry b{.pid = 2, .start_ticks = 1, .parent = 1, .value = 1};
  EXPECT_EQ(counter.Update({a, b}), 2);
  EXPECT_EQ(counter.Update({}), 2);
}

}  // namespace
}  // namespace muster::process
