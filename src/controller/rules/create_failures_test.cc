#include "controller/rules/create_failures.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "controller/rules/world_testing.h"
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

TEST(CreateFailuresTest, ClassifiesStatusCodes) {
  EXPECT_TRUE(IsRejected(Answer(403, "Forbidden")));
  EXPECT_TRUE(IsRejected(Answer(422, "Invalid")));
  EXPECT_TRUE(IsRejected(Answer(400, "BadRequest")));
  EXPECT_TRUE(IsRejected(absl::AlreadyExistsError("another's")));
  EXPECT_FALSE(IsRejected(Answer(409, "Conflict")));
  EXPECT_FALSE(IsRejected(Answer(429, "TooManyRequests")));
  EXPECT_FALSE(IsRejected(Answer(500, "InternalError")));
  EXPECT_FALSE(IsRejected(absl::UnavailableError("cut")));
  EXPECT_FALSE(IsRejected(absl::OkStatus()));
}

TEST(CreateFailuresTest, BacksOffExponentially) {
  CreateFailures failures;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  for (const int seconds : {5, 10, 20, 40, 80, 160, 300, 300}) {
    AddCreateFailure(failures, {Kind::kPod, "a"}, Answer(403, "Forbidden"), now);
    EXPECT_EQ(failures.begin()->second.next - now, absl::Seconds(seconds));
  }
  EXPECT_THAT(Describe(failures), HasSubstr("exceeded quota: small"));
  AddCreateFailure(failures, {Kind::kPod, "b"}, Answer(403, "Forbidden"), now);
  EXPECT_THAT(Describe(failures), HasSubstr("exceeded quota: small (and 1 more)"));
}

TEST(CreateFailuresTest, RetriesObjectsTogether) {
  CreateFailures failures;
  const absl::Time start = absl::FromUnixSeconds(1'800'000'001);
  for (int i = 0; i < 40; ++i) {
    AddCreateFailure(failures, {Kind::kPod, absl::StrCat("pod-", i)}, Answer(403, "Forbidden"),
                     start + i * absl::Milliseconds(50));
  }
  std::set<absl::Time> retries;
  for (const auto& [object, failure] : failures) retries.insert(failure.next);
  EXPECT_THAT(retries, testing::ElementsAre(start + absl::Seconds(9)));
}

TEST(CreateFailuresTest, SetsAConditionAndRecovers) {
  World world(Job({{"Worker", Replicas(3)}}));
  world.RejectPods(Answer(403, "Forbidden"));
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created ReplicaFailure");
  const Json condition = world.status()["conditions"].back();
  EXPECT_EQ(condition["reason"], "FailedCreatePod");
  EXPECT_THAT(condition["message"].get<std::string>(), HasSubstr("exceeded quota: small"));
  EXPECT_EQ(world.rejections(), 3);
  EXPECT_EQ(world.requeue_at() - world.now(), absl::Seconds(5));
  EXPECT_THAT(world.Services(), SizeIs(3));
  const int writes = world.writes();
  world.Advance(absl::Seconds(4));
  world.Settle();
  EXPECT_EQ(world.writes(), writes);
  world.Advance(absl::Seconds(1));
  world.Settle();
  EXPECT_EQ(world.rejections(), 6);
  EXPECT_EQ(world.status()["conditions"].back(), condition);
  EXPECT_EQ(world.requeue_at() - world.now(), absl::Seconds(10));
  world.RejectPods(absl::OkStatus());
  world.Advance(absl::Seconds(10));
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(3));
  EXPECT_EQ(world.Conditions(), "Created");
  EXPECT_THAT(world.status()["conditions"], SizeIs(1));
}

TEST(CreateFailuresTest, EndsWithTheJob) {
  World world(Job({{"Chief", Replicas(1)}, {"Worker", Replicas(1)}}));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.RejectPods(Answer(403, "Forbidden"));
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 2;
  world.Settle();
  EXPECT_THAT(world.Conditions(), HasSubstr("ReplicaFailure"));
  world.SetPhase("j-chief-0", "Succeeded", 0);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
}

TEST(CreateFailuresTest, DoesNotEndARestart) {
  World world(Job({{"Worker", Replicas(1, "ExitCode")}}));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.RejectPods(Answer(403, "Forbidden"));
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
