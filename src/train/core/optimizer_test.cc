#include "train/core/optimizer.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;
using Kind = OptimizerConfig::Kind;

std::string ErrorOf(const Json& json, double weight_decay = 0) {
  return std::string(OptimizerConfig::FromJson(json, weight_decay).status().message());
}

TEST(OptimizerConfigTest, AnEmptySectionIsPlainSgd) {
  for (const Json& json : {Json(), Json::object()}) {
    const auto config = OptimizerConfig::FromJson(json);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->kind, Kind::kSgd);
    EXPECT_EQ(config->learning_rate, 0.01);
    EXPECT_THAT(SlotNames(*config), IsEmpty());
  }
}

TEST(OptimizerConfigTest, EveryTypeIsReadAndWritesItselfBack) {
  const Json sections[] = {
      {{"type", "sgd"}, {"momentum", 0.9}, {"nesterov", true}, {"learning_rate", 0.5}},
      {{"type", "adam"}, {"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-6}},
      {{"type", "adamw"}, {"learning_rate", 3e-4}},
      {{"type", "adagrad"}},
      {{"type", "rmsprop"}, {"momentum", 0.5}, {"decay", 0.9}},
  };
  for (const Json& json : sections) {
    const auto config = OptimizerConfig::FromJson(json, 0.25);
    ASSERT_TRUE(config.ok()) << json << config.status();
    EXPECT_EQ(config->weight_decay, 0.25);
    const auto again = OptimizerConfig::FromJson(config->ToJson(), 0.25);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *config) << json;
  }
}

TEST(OptimizerConfigTest, EpsilonIsThatOfPyTorchUnlessGiven) {
  EXPECT_EQ(OptimizerConfig::FromJson({{"type", "adam"}})->epsilon, 1e-8);
  EXPECT_EQ(OptimizerConfig::FromJson({{"type", "adagrad"}})->epsilon, 1e-10);
  EXPECT_EQ(OptimizerConfig::FromJson({{"type", "rmsprop"}})->epsilon, 1e-8);
}

TEST(OptimizerConfigTest, SlotsAreThoseTheTypeNeeds) {
  const auto slots = [](const Json& json) { return SlotNames(*OptimizerConfig::FromJson(json)); };
  EXPECT_THAT(slots({{"type", "sgd"}, {"momentum", 0.9}}), ElementsAre("momentum"));
  EXPECT_THAT(slots({{"type", "adam"}}), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(slots({{"type", "adamw"}}), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(slots({{"type", "adagrad"}}), ElementsAre("sum"));
  EXPECT_THAT(slots({{"type", "rmsprop"}}), ElementsAre("square_avg"));
  EXPECT_THAT(slots({{"type", "rmsprop"}, {"momentum", 0.9}}),
              ElementsAre("square_avg", "momentum"));
}

TEST(OptimizerConfigTest, MistakesNameTheKey) {
  EXPECT_THAT(ErrorOf(Json::array()), HasSubstr("write a map"));
  EXPECT_THAT(ErrorOf({{"type", "adamm"}}), HasSubstr("none of sgd, adam,"));
  EXPECT_THAT(ErrorOf({{"type", 3}}), HasSubstr("none of sgd, adam,"));
  EXPECT_THAT(ErrorOf({{"learning_rate", "fast"}}), HasSubstr("'learning_rate'"));
  EXPECT_THAT(ErrorOf({{"learning_rate", -1}}), HasSubstr("from 0 to 1000"));
  EXPECT_THAT(ErrorOf({{"learning_rate", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("'learning_rate'"));
  EXPECT_THAT(ErrorOf({{"type", "adam"}, {"beta1", 1}}), HasSubstr("'beta1'"));
  EXPECT_THAT(ErrorOf({{"type", "adam"}, {"momentum", 0.9}}),
              HasSubstr("'momentum', which is not used here"));
  EXPECT_THAT(ErrorOf({{"nesterov", true}}), HasSubstr("without momentum"));
  EXPECT_THAT(ErrorOf({{"nesterov", 1}, {"momentum", 0.9}}), HasSubstr("neither true nor false"));
  EXPECT_THAT(ErrorOf({}, -1), HasSubstr("'weight_decay'"));
}

}  // namespace
}  // namespace muster::train
