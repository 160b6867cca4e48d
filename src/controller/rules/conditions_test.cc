#include "controller/rules/conditions.h"

#include "gtest/gtest.h"

namespace muster::controller {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(ConditionsTest, TheNewestIsLast) {
  Json status = Json::object();
  SetCondition(status, {kCreated, true, "r", "m"}, kNow);
  SetCondition(status, {kRunning, true, "r", "m"}, kNow);
  SetCondition(status, {kRestarting, true, "r", "m"}, kNow);
  EXPECT_EQ(status["conditions"].back()["type"], kRestarting);
  EXPECT_FALSE(IsTrue(status, kRunning));
  SetCondition(status, {kRunning, true, "again", "m"}, kNow + absl::Seconds(5));
  EXPECT_EQ(status["conditions"].back()["type"], kRunning);
  EXPECT_FALSE(IsTrue(status, kRestarting));
  EXPECT_EQ(status["conditions"].size(), 3U);
}

TEST(ConditionsTest, AnEqualConditionChangesNothing) {
  Json status = Json::object();
  SetCondition(status, {kRunning, true, "r", "m"}, kNow);
  const Json before = status;
  SetCondition(status, {kRunning, true, "r", "m"}, kNow + absl::Hours(1));
  EXPECT_EQ(status, before);
  SetCondition(status, {kRunning, true, "r", "other"}, kNow + absl::Hours(1));
  EXPECT_EQ(status["conditions"][0]["lastTransitionTime"], k8s::Timestamp(kNow));
  EXPECT_EQ(status["conditions"][0]["lastUpdateTime"], k8s::Timestamp(kNow + absl::Hours(1)));
}

TEST(ConditionsTest, RemoveUncoversThePreviousCondition) {
  Json status = Json::object();
  RemoveCondition(status, kReplicaFailure);
  EXPECT_EQ(status, Json::object());
  SetCondition(status, {kRestarting, true, "r", "m"}, kNow);
  SetCondition(status, {kReplicaFailure, true, "r", "m"}, kNow);
  EXPECT_TRUE(IsTrue(status, kRestarting));
  RemoveCondition(status, kReplicaFailure);
  EXPECT_EQ(status["conditions"].back()["type"], kRestarting);
  SetCondition(status, {kReplicaFailure, true, "r", "m"}, kNow);
  SetCondition(status, {kFailed, true, "r", "m"}, kNow);
  RemoveCondition(status, kReplicaFailure);
  EXPECT_TRUE(IsTrue(status, kReplicaFailure));  // a finished job does not change
}

TEST(ConditionsTest, TheFirstOutcomeIsFinal) {
  Json status = Json::object();
  SetCondition(status, {kRunning, true, "r", "m"}, kNow);
  SetCondition(status, {kSucceeded, true, "r", "m"}, kNow);
  EXPECT_FALSE(IsTrue(status, kRunning));
  SetCondition(status, {kFailed, true, "r", "m"}, kNow);
  SetCondition(status, {kRunning, true, "r", "m"}, kNow);
  EXPECT_TRUE(IsTrue(status, kSucceeded));
  EXPECT_FALSE(IsTrue(status, kFailed));
  EXPECT_FALSE(IsTrue(status, kRunning));
}

}  // namespace
}  // namespace muster::controller
