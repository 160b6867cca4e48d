// Pods that the cluster ends: lost with their nodes, evicted, deleted. Also the records of them in
// the status, with a CRD that prunes it.
#include "absl/strings/str_cat.h"
#include "controller/rules/restarts.h"
#include "controller/rules/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kPolicies[] = {"Never", "OnFailure", "Always", "ExitCode"};

std::string UidOf(World& world, const std::string& pod) {
  return world.pods()[pod]["metadata"]["uid"];
}

std::string MessageOf(World& world, const char* type) {
  for (const Json& condition : world.status()["conditions"]) {
    if (condition["type"] == type) return condition["message"];
  }
  return "";
}

Json Chiefless(const char* policy, int workers = 2) {
  return Job({{"Worker", Replicas(workers, policy)}}, {{"backoffLimit", 1}});
}

TEST(LostPodTest, IsReplacedUnderEveryPolicyAndDoesNotCount) {
  struct Case {
    const char* reason;     // of the pod
    const char* condition;  // the reason of its DisruptionTarget
    std::optional<int> code;
  };
  for (const Case& one : {Case{"", "DeletionByPodGC", std::nullopt},
                          {"Evicted", "", 137},
                          {"Evicted", "TerminationByKubelet", 137},
                          {"", "PreemptionByScheduler", 1},
                          {"Preempting", "", 143},
                          {"NodeLost", "", std::nullopt},
                          {"Terminated", "", 0},
                          {"NodeShutdown", "", std::nullopt},
                          {"NodeAffinity", "", std::nullopt},
                          {"UnexpectedAdmissionError", "", std::nullopt},
                          {"OutOfcpu", "", std::nullopt},
                          {"TopologyAffinityError", "", std::nullopt},
                          {"", "", std::nullopt}}) {
    for (const char* policy : kPolicies) {
      World world(Chiefless(policy));
      world.Settle();
      world.SetAll("Running");
      world.Settle();
      const std::string old = UidOf(world, "j-worker-1");
      world.SetPhase("j-worker-1", "Failed", one.code);
      if (*one.reason != 0) world.pods()["j-worker-1"]["status"]["reason"] = one.reason;
      if (*one.condition != 0) world.SetCondition("j-worker-1", "DisruptionTarget", one.condition);
      const std::string what = absl::StrCat(one.reason, one.condition, " under ", policy);
      world.ReconcileOnce();  // sets Running again once the others run
      EXPECT_THAT(MessageOf(world, kRestarting), HasSubstr("Worker 1 (pod j-worker-1) was lost: "));
      EXPECT_THAT(MessageOf(world, kRestarting),
                  HasSubstr(*one.reason != 0 ? one.reason : one.condition));
      world.Settle();
      EXPECT_FALSE(IsFinished(world.status())) << what;
      EXPECT_NE(UidOf(world, "j-worker-1"), old) << what;
      EXPECT_EQ(FailuresOf(world.status(), "worker:1"), 0) << what;
      EXPECT_EQ(world.status()["restarts"]["worker:1"]["lost"], 1) << what;
    }
  }
}

TEST(LostPodTest, FailuresOfTheProgramStillCount) {
  // The deadline of the pod's own template, and an init container that failed.
  for (const bool deadline : {true, false}) {
    World world(Chiefless("ExitCode"));
    world.Settle();
    Json& status = world.pods()["j-worker-0"]["status"];
    status["phase"] = "Failed";
    if (deadline) {
      status["reason"] = "DeadlineExceeded";
    } else {
      status["containerStatuses"] = Json::array(
          {{{"name", "tensorflow"}, {"state", {{"waiting", {{"reason", "PodInitializing"}}}}}}});
    }
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Failed") << deadline;
  }
  // A disruption after the success changes nothing.
  World world(Chiefless("Never"));
  world.Settle();
  world.SetPhase("j-worker-0", "Succeeded", 0);
  world.SetCondition("j-worker-0", "DisruptionTarget", "PreemptionByScheduler");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
}

TEST(LostPodTest, ADynamicWorkerIsReplaced) {
  Json job = Job({{"PS", Replicas(1)}, {"Worker", Replicas(2, "Never")}});
  job["spec"]["enableDynamicWorker"] = true;
  World world(job);
  world.Settle();
  const std::string old = UidOf(world, "j-worker-1");
  world.SetPhase("j-worker-1", "Failed", 137);
  world.pods()["j-worker-1"]["status"]["reason"] = "Evicted";
  world.Settle();
  EXPECT_NE(UidOf(world, "j-worker-1"), old);
}

TEST(LostPodTest, RepeatedLossesAreDelayed) {
  World world(Chiefless("Never", 1));
  world.Settle();
  const auto lose = [&] {
    world.SetPhase("j-worker-0", "Failed");
    world.pods()["j-worker-0"]["status"]["reason"] = "UnexpectedAdmissionError";
    world.Settle();
  };
  lose();
  EXPECT_THAT(world.Pods(), SizeIs(1));  // immediately
  for (const int seconds : {10, 20, 40, 80, 160, 300, 300}) {
    lose();
    EXPECT_THAT(world.Pods(), IsEmpty()) << seconds;
    EXPECT_EQ(world.requeue_at() - world.now(), absl::Seconds(seconds));
    world.Advance(absl::Seconds(seconds) - absl::Seconds(1));
    world.Settle();
    EXPECT_THAT(world.Pods(), IsEmpty()) << seconds;
    world.Advance(absl::Seconds(1));
    world.Settle();
    EXPECT_THAT(world.Pods(), SizeIs(1)) << seconds;
  }
  EXPECT_EQ(world.status()["restarts"]["worker:0"]["lost"], 8);
  EXPECT_FALSE(IsFinished(world.status()));
  world.Advance(absl::Minutes(10));  // the backoff is reset
  lose();
  EXPECT_THAT(world.Pods(), SizeIs(1));
}

Json WholeJob() {
  Json job = Job({{"PS", Replicas(1, "ExitCode")}, {"Worker", Replicas(2, "ExitCode")}},
                 {{"backoffLimit", 1}});
  job["metadata"]["annotations"]["muster/restart-scope"] = "job";
  return job;
}

TEST(LostPodTest, AWholeJobRestartIsNotCounted) {
  for (const auto& [deleting, code] : {std::pair(false, 137), {true, 137}, {false, 1}, {true, 1}}) {
    World world(WholeJob());
    world.Settle();
    world.SetAll("Running");
    world.Settle();
    const std::string ps = UidOf(world, "j-ps-0");
    world.SetCondition("j-worker-1", "DisruptionTarget", "EvictionByEvictionAPI");
    if (deleting) {
      world.Terminate("j-worker-1");
    } else {
      world.SetPhase("j-worker-1", "Failed");
    }
    world.SetPhase("j-ps-0", "Failed", code);  // a consequence of the lost worker
    world.ReconcileOnce();
    world.Collect();
    world.Settle();
    EXPECT_FALSE(IsFinished(world.status()));
    EXPECT_EQ(Failures(world.status()), 0);
    EXPECT_THAT(world.Pods(), SizeIs(3));
    EXPECT_NE(UidOf(world, "j-ps-0"), ps);
    EXPECT_EQ(world.pods()["j-ps-0"]["metadata"]["annotations"]["muster/life"], "1");
  }
}

TEST(LostPodTest, SameEndWhereverInterrupted) {
  for (const bool prunes : {false, true}) {
    ExpectSameEndWhereverInterrupted(
        [&] {
          World world(Job({{"Worker", Replicas(2, "ExitCode")}}, {{"backoffLimit", 2}}));
          if (prunes) world.Prune();
          return world;
        },
        [&](World& world, const std::function<void()>& settle) {
          settle();
          world.SetAll("Running");
          settle();
          world.SetPhase("j-worker-1", "Failed", 137);
          world.pods()["j-worker-1"]["status"]["reason"] = "Evicted";
          settle();
          EXPECT_EQ(StatusOf(world.job())["restarts"]["worker:1"]["lost"], 1);
          world.SetAll("Running");
          world.SetPhase("j-worker-1", "Failed", 139);
          settle();
          EXPECT_EQ(FailuresOf(StatusOf(world.job()), "worker:1"), 1);
          // The annotation may lack the failure that ended the job; no rule depends on it.
          if (prunes) return;
          world.SetAll("Running");
          world.SetPhase("j-worker-1", "Failed", 139);
          settle();
          EXPECT_EQ(world.Conditions(), "Created Failed");
        });
  }
}

TEST(DeletedPodTest, HasNoOutcomeAndIsReplacedOnceGone) {
  for (const char* policy : kPolicies) {
    for (const int code : {0, 1, 143}) {
      World world(Job({{"Chief", Replicas(1, policy)}, {"Worker", Replicas(1, policy)}},
                      {{"backoffLimit", 0}}));
      world.Settle();
      world.SetAll("Running");
      world.Settle();
      for (const char* pod : {"j-chief-0", "j-worker-0"}) {
        const std::string old = UidOf(world, pod);
        world.Terminate(pod);
        world.SetPhase(pod, code == 0 ? "Succeeded" : "Failed", code);
        world.Settle();
        EXPECT_EQ(world.Conditions(), "Created Running") << policy << code;
        EXPECT_FALSE(world.status().contains("restarts")) << policy << code;
        EXPECT_FALSE(world.status().contains("succeeded")) << policy << code;
        EXPECT_EQ(world.status()["replicaStatuses"][pod[2] == 'c' ? "Chief" : "Worker"],
                  (Json{{"active", 0}, {"succeeded", 0}, {"failed", 0}}));
        EXPECT_EQ(UidOf(world, pod), old);
        world.Collect();
        world.Settle();
        EXPECT_NE(UidOf(world, pod), old);
        world.SetAll("Running");
        world.Settle();
      }
    }
  }
}

TEST(DeletedPodTest, RestartsInPlaceAreNotCounted) {
  World world(Job({{"Worker", Replicas(2, "OnFailure")}}, {{"backoffLimit", 2}}));
  world.Settle();
  world.SetAll("Running");
  world.Terminate("j-worker-1");
  world.pods()["j-worker-1"]["status"]["containerStatuses"] =
      Json::array({{{"name", "tensorflow"}, {"restartCount", 5}}});
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Running");
}

TEST(DeletedPodTest, ATerminationLongBeforeTheDeletionCounts) {
  for (const int seconds : {-20, 5}) {
    World world(Job({{"Chief", Replicas(1)}, {"Worker", Replicas(1)}}));
    world.Settle();
    world.SetPhase("j-chief-0", "Succeeded", 0);
    world.pods()["j-chief-0"]["status"]["containerStatuses"][0]["state"]["terminated"]
                ["finishedAt"] = k8s::Timestamp(world.now() + absl::Seconds(seconds));
    world.Terminate("j-chief-0");
    world.Settle();
    EXPECT_EQ(IsTrue(world.status(), kSucceeded), seconds < 0) << seconds;
  }
}

TEST(DeletedPodTest, AJobThatNeverRestartsSurvivesItsOwnUpdate) {
  for (const char* update : {"rolling", "recreate"}) {
    Json job = Job({{"PS", Replicas(1)}, {"Worker", Replicas(2)}}, {{"backoffLimit", 0}});
    job["metadata"]["annotations"]["muster/update"] = update;
    World world(job);
    world.KeepDeleted();
    world.Settle();
    world.SetAll("Running");
    world.Settle();
    for (auto& [role, spec] : world.job()["spec"]["tfReplicaSpecs"].items()) {
      spec["template"]["spec"]["containers"][0]["image"] = "tf:2";
    }
    for (int i = 0; i < 3; ++i) {
      world.Settle();
      for (const auto& [name, pod] : world.pods()) {
        if (k8s::IsBeingDeleted(pod)) world.SetPhase(name, "Failed", 143);
      }
      world.Settle();
      world.Collect();
      world.Settle();
      world.SetAll("Running");
      world.Settle();
    }
    EXPECT_EQ(world.Conditions(), "Created Running") << update;
    EXPECT_FALSE(world.status().contains("restarts"));
    for (const auto& [name, pod] : world.pods()) {
      EXPECT_EQ(pod["spec"]["containers"][0]["image"], "tf:2") << name;
    }
  }
}

TEST(CountTest, FollowsThePodsAfterTheOutcome) {
  World world(Job({{"Chief", Replicas(1)}, {"PS", Replicas(2)}, {"Worker", Replicas(2)}},
                  {{"cleanPodPolicy", "All"}}));
  world.KeepDeleted();
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.SetPhase("j-worker-0", "Failed", 1);
  world.ReconcileOnce();
  EXPECT_EQ(world.status()["replicaStatuses"]["PS"]["active"], 2);
  world.Settle();
  world.Collect();
  world.Settle();
  EXPECT_EQ(world.status()["replicaStatuses"],
            (Json{{"Chief", {{"active", 0}, {"succeeded", 0}, {"failed", 0}}},
                  {"PS", {{"active", 0}, {"succeeded", 0}, {"failed", 0}}},
                  {"Worker", {{"active", 0}, {"succeeded", 0}, {"failed", 1}}}}));
  World kept(Job({{"PS", Replicas(2)}, {"Worker", Replicas(1)}}));
  kept.Settle();
  kept.SetAll("Running");
  kept.SetPhase("j-worker-0", "Succeeded", 0);
  kept.Settle();
  EXPECT_EQ(kept.status()["replicaStatuses"]["PS"]["active"], 2);  // they are still running
  kept.SetPhase("j-ps-1", "Failed", 1);
  kept.Settle();
  EXPECT_EQ(kept.status()["replicaStatuses"]["PS"],
            (Json{{"active", 1}, {"succeeded", 0}, {"failed", 1}}));
}

TEST(BackoffTest, FailsAtTheLimit) {
  for (const auto& [limit, failures] : std::map<int, int>{{0, 1}, {1, 1}, {2, 2}, {3, 3}}) {
    World world(Job({{"Worker", Replicas(1, "ExitCode")}}, {{"backoffLimit", limit}}));
    world.Settle();
    for (int failure = 1; failure <= failures; ++failure) {
      EXPECT_FALSE(IsFinished(world.status())) << limit;
      world.SetPhase("j-worker-0", "Failed", 137);
      world.Settle();
    }
    EXPECT_TRUE(IsTrue(world.status(), kFailed)) << limit;
    EXPECT_THAT(world.status()["conditions"].back()["message"].get<std::string>(),
                HasSubstr("backoff limit"));
  }
}

TEST(PrunedStatusTest, RestartsAndSuccessesAreKept) {
  Json job = Job({{"Worker", Replicas(3, "ExitCode")}}, {{"backoffLimit", 2}});
  job["spec"]["successPolicy"] = "AllWorkers";
  World world(job);
  world.Prune();
  world.Settle();
  EXPECT_FALSE(world.job()["metadata"].contains("annotations"));
  world.SetAll("Running");
  world.SetPhase("j-worker-2", "Succeeded", 0);
  world.Settle();
  world.pods().erase("j-worker-2");
  world.SetPhase("j-worker-0", "Failed", 137);
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-worker-0", "j-worker-1"));
  EXPECT_FALSE(world.status().contains("restarts"));
  EXPECT_EQ(StatusOf(world.job())["restarts"]["worker:0"]["count"], 1);
  const int writes = world.writes();
  world.Settle();
  EXPECT_EQ(world.writes(), writes);
  world.SetPhase("j-worker-1", "Failed", 137);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
}

TEST(PrunedStatusTest, IgnoresTheAnnotationOfAnotherJob) {
  World world(Job({{"Worker", Replicas(1)}}));
  for (const char* text : {R"({"uid": "another", "succeeded": ["worker:0"]})", "[1]", "{",
                           R"({"uid": "uid-job", "succeeded": 5, "restarts": [1]})"}) {
    world.job()["metadata"]["annotations"]["muster/status"] = text;
    world.Settle();
    EXPECT_THAT(world.Pods(), ElementsAre("j-worker-0")) << text;
  }
}

}  // namespace
}  // namespace muster::controller
