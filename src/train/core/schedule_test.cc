#include "train/core/schedule.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Schedule Make(const Json& json, double base = 0.5, int64_t total = 100) {
  const auto schedule = Schedule::FromJson(json, base, total);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *schedule;
}

std::string ErrorOf(const Json& json) {
  return std::string(Schedule::FromJson(json, 0.5, 100).status().message());
}

TEST(ScheduleTest, IsConstantByDefault) {
  for (const Json& json : {Json(), Json::object(), Json{{"type", "constant"}}}) {
    const Schedule schedule = Make(json);
    EXPECT_EQ(schedule.LearningRate(1), 0.5);
    EXPECT_EQ(schedule.LearningRate(1'000'000'000'000), 0.5);
  }
}

TEST(ScheduleTest, EveryTypeWarmsUpLinearlyToTheFullRate) {
  for (const char* type : {"constant", "linear", "cosine", "exponential", "step"}) {
    Json json = {{"type", type}, {"warmup_steps", 4}};
    if (json["type"] != "constant") json["decay_steps"] = 10;
    const Schedule schedule = Make(json);
    EXPECT_EQ(schedule.LearningRate(1), 0.125) << type;
    EXPECT_EQ(schedule.LearningRate(3), 0.375) << type;
    EXPECT_EQ(schedule.LearningRate(4), 0.5) << type;
    EXPECT_EQ(schedule.LearningRate(5), 0.5) << type;
    if (json["type"] != "constant" && json["type"] != "step") {
      EXPECT_LT(schedule.LearningRate(6), 0.5) << type;
    }
  }
}

TEST(ScheduleTest, LinearStaysAtItsEnd) {
  const Schedule schedule =
      Make({{"type", "linear"}, {"decay_steps", 10}, {"end_learning_rate", 0.25}});
  EXPECT_EQ(schedule.LearningRate(1), 0.5);
  EXPECT_EQ(schedule.LearningRate(6), 0.375);
  EXPECT_EQ(schedule.LearningRate(11), 0.25);
  EXPECT_EQ(schedule.LearningRate(12), 0.25);
  EXPECT_EQ(schedule.LearningRate(1000), 0.25);
}

TEST(ScheduleTest, CosineStaysAtItsEnd) {
  const Schedule schedule =
      Make({{"type", "cosine"}, {"decay_steps", 8}, {"end_learning_rate", 0.1}});
  EXPECT_EQ(schedule.LearningRate(1), 0.5);
  EXPECT_NEAR(schedule.LearningRate(3), 0.1 + 0.4 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_NEAR(schedule.LearningRate(5), 0.3, 1e-15);
  EXPECT_EQ(schedule.LearningRate(9), 0.1);
  EXPECT_EQ(schedule.LearningRate(10), 0.1);
}

TEST(ScheduleTest, DecayStepsDefaultToTheRestOfTheJob) {
  const Schedule linear = Make({{"type", "linear"}, {"warmup_steps", 20}}, 0.5, 100);
  EXPECT_EQ(linear.LearningRate(21), 0.5);
  EXPECT_EQ(linear.LearningRate(61), 0.25);
  EXPECT_NEAR(linear.LearningRate(100), 0.5 / 80, 1e-15);  // the last step still learns
  EXPECT_EQ(linear.LearningRate(101), 0);
  const Schedule exponential = Make({{"type", "exponential"}}, 0.5, 100);
  EXPECT_NEAR(exponential.LearningRate(101), 0.05, 1e-15);
}

TEST(ScheduleTest, ExponentialFallsSmoothlyToItsFloor) {
  const Schedule schedule = Make({{"type", "exponential"},
                                  {"decay_steps", 2},
                                  {"decay_rate", 0.25},
                                  {"end_learning_rate", 0.01}});
  EXPECT_EQ(schedule.LearningRate(1), 0.5);
  EXPECT_EQ(schedule.LearningRate(2), 0.25);
  EXPECT_EQ(schedule.LearningRate(3), 0.125);
  EXPECT_EQ(schedule.LearningRate(1000), 0.01);
}

TEST(ScheduleTest, StepDecaysAtEachBoundary) {
  const Schedule schedule = Make({{"type", "step"},
                                  {"warmup_steps", 2},
                                  {"decay_steps", 10},
                                  {"decay_rate", 0.5},
                                  {"end_learning_rate", 0.1}});
  EXPECT_EQ(schedule.LearningRate(3), 0.5);
  EXPECT_EQ(schedule.LearningRate(12), 0.5);
  EXPECT_EQ(schedule.LearningRate(13), 0.25);
  EXPECT_EQ(schedule.LearningRate(22), 0.25);
  EXPECT_EQ(schedule.LearningRate(23), 0.125);
  EXPECT_EQ(schedule.LearningRate(33), 0.1);
}

TEST(ScheduleTest, AWarmUpLongerThanTheJobIsAllowed) {
  const Schedule schedule = Make({{"type", "cosine"}, {"warmup_steps", 200}}, 0.5, 100);
  EXPECT_EQ(schedule.LearningRate(100), 0.25);
  EXPECT_EQ(schedule.LearningRate(200), 0.5);
}

TEST(ScheduleTest, MistakesNameTheKey) {
  EXPECT_THAT(ErrorOf({{"type", "cosin"}}), HasSubstr("none of constant, linear, cosine"));
  EXPECT_THAT(ErrorOf({{"type", "step"}}), HasSubstr("needs 'decay_steps'"));
  EXPECT_THAT(ErrorOf({{"type", "linear"}, {"decay_steps", 0}}), HasSubstr("'decay_steps'"));
  EXPECT_THAT(ErrorOf({{"type", "linear"}, {"decay_steps", 2.5}}), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf({{"warmup_steps", ~uint64_t{0}}}), HasSubstr("'warmup_steps'"));
  EXPECT_THAT(ErrorOf({{"type", "linear"}, {"decay_rate", 0.5}}), HasSubstr("not used here"));
  EXPECT_THAT(ErrorOf({{"type", "exponential"}, {"end_learning_rate", 0.6}}),
              HasSubstr("above the learning rate"));
  EXPECT_THAT(ErrorOf("cosine"), HasSubstr("write a map"));
}

}  // namespace
}  // namespace muster::train
