#include "train/run/cadence.h"

#include "gtest/gtest.h"

namespace muster::train {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(CadenceTest, SummariesAreDueWhenAMultipleIsPassed) {
  Cadence cadence({.summary_steps = 100});
  cadence.Restart(150, kStart);
  EXPECT_FALSE(cadence.SummaryDue(199));
  EXPECT_TRUE(cadence.SummaryDue(200));
  EXPECT_TRUE(cadence.SummaryDue(207));  // the task did not see step 200
  cadence.Summarized(207);
  EXPECT_FALSE(cadence.SummaryDue(299));
  EXPECT_TRUE(cadence.SummaryDue(300));
}

TEST(CadenceTest, CheckpointsAreDueBySteps) {
  Cadence cadence({.checkpoint_steps = 10, .checkpoint_interval = absl::Seconds(1)});
  cadence.Restart(0, kStart);
  EXPECT_FALSE(cadence.CheckpointDue(9, kStart + absl::Hours(1)));
  EXPECT_TRUE(cadence.CheckpointDue(10, kStart));
  cadence.Saved(10, kStart);
  EXPECT_FALSE(cadence.CheckpointDue(19, kStart));
}

TEST(CadenceTest, CheckpointsAreDueByTime) {
  Cadence cadence({.checkpoint_interval = absl::Seconds(600)});
  cadence.Restart(5, kStart);
  EXPECT_FALSE(cadence.CheckpointDue(1000, kStart + absl::Seconds(600)));
  EXPECT_TRUE(cadence.CheckpointDue(6, kStart + absl::Seconds(601)));
  cadence.Saved(6, kStart + absl::Seconds(601));
  EXPECT_FALSE(cadence.CheckpointDue(7, kStart + absl::Seconds(700)));
}

TEST(CadenceTest, AnEvaluationIsDueAfterBothStepsAndTime) {
  Cadence cadence({.evaluation_steps = 50, .evaluation_interval = absl::Seconds(30)});
  EXPECT_FALSE(cadence.EvaluationDue(49, kStart));
  EXPECT_TRUE(cadence.EvaluationDue(50, kStart));  // the first does not wait
  cadence.Evaluated(50, kStart);
  EXPECT_FALSE(cadence.EvaluationDue(99, kStart + absl::Seconds(30)));
  EXPECT_FALSE(cadence.EvaluationDue(100, kStart + absl::Seconds(29)));
  EXPECT_TRUE(cadence.EvaluationDue(100, kStart + absl::Seconds(30)));
}

}  // namespace
}  // namespace muster::train
