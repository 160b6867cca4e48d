#include "job/states.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

TEST(StatesTest, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(JobState::kUnreachable); ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(ParseJobState(ToString(state)), state) << ToString(state);
  }
  for (int i = 0; i <= static_cast<int>(TaskState::kLost); ++i) {
    const auto state = static_cast<TaskState>(i);
    EXPECT_EQ(ParseTaskState(ToString(state)), state) << ToString(state);
  }
  EXPECT_EQ(ToString(JobState::kRestarting), "Restarting");
  EXPECT_EQ(ParseJobState("running"), std::nullopt);
  EXPECT_EQ(ParseTaskState(""), std::nullopt);
}

TEST(StatesTest, OnlyTheLastStatesAreFinal) {
  EXPECT_TRUE(IsFinal(JobState::kSucceeded));
  EXPECT_TRUE(IsFinal(JobState::kFailed));
  EXPECT_TRUE(IsFinal(JobState::kStopped));
  EXPECT_FALSE(IsFinal(JobState::kUnreachable));
  EXPECT_FALSE(IsFinal(JobState::kRestarting));
  EXPECT_TRUE(IsFinal(TaskState::kStopped));
  EXPECT_FALSE(IsFinal(TaskState::kRestarting));
}

}  // namespace
}  // namespace muster::job
