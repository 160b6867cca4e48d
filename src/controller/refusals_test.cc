#include "controller/refusals.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "controller/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

absl::Status Answer(int code, const std::string& reason) {
  return k8s::ErrorOf({.verb = "create", .kind = k8s::kPods}, code,
                      {{"reason", reason}, {"message", "exceeded quota: small"}});
}

TEST(RefusalTest, ClassifiesStatusCodes) {
  EXPECT_TRUE(IsRefusal(Answer(403, "Forbidden")));
  EXPECT_TRUE(IsRefusal(Answer(422, "Invalid")));
  EXPECT_TRUE(IsRefusal(Answer(400, "BadRequest")));
  EXPECT_TRUE(IsRefusal(absl::AlreadyExistsError("another's")));
  EXPECT_FALSE(IsRefusal(Answer(409, "Conflict")));
  EXPECT_FALSE(IsRefusal(Answer(429, "TooManyRequests")));
  EXPECT_FALSE(IsRefusal(Answer(500, "InternalError")));
  EXPECT_FALSE(IsRefusal(absl::UnavailableError("cut")));
  EXPECT_FALSE(IsRefusal(absl::OkStatus()));
}

TEST(RefusalTest, IsTriedAgainLaterAndLater) {
  Refusals refusals;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  for (const int seconds : {5, 10, 20, 40, 80, 160, 300, 300}) {
    AddRefusal(refusals, {Kind::kPod, "a"}, Answer(403, "Forbidden"), now);
    EXPECT_EQ(refusals.begin()->second.next - now, absl::Seconds(seconds));
  }
  EXPECT_THAT(Describe(refusals), HasSubstr("exceeded quota: small"));
  AddRefusal(refusals, {Kind::kPod, "b"}, Answer(403, "Forbidden"), now);
  EXPECT_THAT(Describe(refusals), HasSubstr("exceeded quota: small (and 1 more)"));
}

TEST(RefusalTest, ObjectsRefusedOneAfterAnotherAreTriedTogether) {
  Refusals refusals;
  const absl::Time start = absl::FromUnixSeconds(1'800'000'001);
  for (int i = 0; i < 40; ++i) {
    AddRefusal(refusals, {Kind::kPod, absl::StrCat("pod-", i)}, Answer(403, "Forbidden"),
               start + i * absl::Milliseconds(50));
  }
  std::set<absl::Time> retries;
  for (const auto& [object, refusal] : refusals) retries.insert(refusal.next);
  EXPECT_THAT(retries, testing::ElementsAre(start + absl::Seconds(9)));
}

TEST(RefusalTest, TheJobSaysSoAndRecoversByItself) {
  World world(Job({{"Worker", Replicas(3)}}));
  world.Refuse(Answer(403, "Forbidden"));
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created ReplicaFailure");
  const Json condition = world.status()["conditions"].back();
  EXPECT_EQ(condition["reason"], "FailedCreatePod");
  EXPECT_THAT(condition["message"].get<std::string>(), HasSubstr("exceeded quota: small"));
  EXPECT_EQ(world.refusals(), 3);
  EXPECT_EQ(world.wake() - world.now(), absl::Seconds(5));
  EXPECT_THAT(world.Services(), SizeIs(3));
  const int writes = world.writes();
  world.Advance(absl::Seconds(4));
  world.Settle();
  EXPECT_EQ(world.writes(), writes);
  world.Advance(absl::Seconds(1));
  world.Settle();
  EXPECT_EQ(world.refusals(), 6);
  EXPECT_EQ(world.status()["conditions"].back(), condition);
  EXPECT_EQ(world.wake() - world.now(), absl::Seconds(10));
  world.Refuse(absl::OkStatus());
  world.Advance(absl::Seconds(10));
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(3));
  EXPECT_EQ(world.Conditions(), "Created");
  EXPECT_THAT(world.status()["conditions"], SizeIs(1));
}

TEST(RefusalTest, EndsWithTheJob) {
  World world(Job({{"Chief", Replicas(1)}, {"Worker", Replicas(1)}}));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.Refuse(Answer(403, "Forbidden"));
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 2;
  world.Settle();
  EXPECT_THAT(world.Conditions(), HasSubstr("ReplicaFailure"));
  world.SetPhase("j-chief-0", "Succeeded", 0);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
}

TEST(RefusalTest, DoesNotEndARestart) {
  World world(Job({{"Worker", Replicas(1, "ExitCode")}}));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.Refuse(Answer(403, "Forbidden"));
  world.SetPhase("j-worker-0", "Failed", 137);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Restarting ReplicaFailure");
  world.job()["spec"]["runPolicy"]["suspend"] = true;
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Suspended");
  EXPECT_THAT(world.Pods(), IsEmpty());
}

}  // namespace
}  // namespace muster::controller
