// The policies in a job's annotations.
#include "absl/strings/match.h"
#include "controller/rules/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Json With(Json job, const char* annotation, const char* value) {
  job["metadata"]["annotations"][annotation] = value;
  return job;
}

std::map<std::string, std::string> UidsOf(World& world) {
  std::map<std::string, std::string> uids;
  for (const auto& [name, pod] : world.pods()) uids[name] = pod["metadata"]["uid"];
  return uids;
}

// Returns how many of those pods still exist.
int Left(World& world, const std::map<std::string, std::string>& uids) {
  int left = 0;
  for (const auto& [name, uid] : UidsOf(world)) {
    const auto before = uids.find(name);
    if (before != uids.end() && before->second == uid) ++left;
  }
  return left;
}

// Returns a native job as `muster run` submits it.
Json NativeJob(const Json& replicas) {
  Json job = Job(replicas, {{"cleanPodPolicy", "Running"}});
  job["metadata"]["annotations"] = {
      {"muster/format", "native"}, {"muster/max-restarts", "1"}, {"muster/finish-grace", "30"}};
  return job;
}

TEST(NativeJobTest, RestartsAreLimitedForEachTask) {
  World world(NativeJob({{"Worker", Replicas(3, "ExitCode")}}));
  world.Settle();
  for (const char* pod : {"j-worker-0", "j-worker-1", "j-worker-2"}) {
    world.SetAll("Running");
    world.SetPhase(pod, "Failed", 137);
    world.Settle();
    EXPECT_EQ(world.status()["conditions"].back()["status"], "True");
  }
  EXPECT_EQ(world.status()["restarts"].size(), 3U);
  EXPECT_FALSE(IsFinished(world.status()));
  world.SetPhase("j-worker-1", "Failed", 137);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
  EXPECT_THAT(world.status()["conditions"].back()["message"].get<std::string>(),
              testing::HasSubstr("worker:1: max_restarts (1) exceeded"));
}

TEST(NativeJobTest, TasksMayExitByThemselvesAfterTheSuccess) {
  World world(NativeJob({{"Chief", Replicas(1)}, {"PS", Replicas(1)}}));
  world.Settle();
  world.SetAll("Running");
  world.SetPhase("j-chief-0", "Succeeded");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
  EXPECT_THAT(world.Pods(), ElementsAre("j-chief-0", "j-ps-0"));
  EXPECT_EQ(world.requeue_at() - world.now(), absl::Seconds(30));
  world.Advance(absl::Seconds(30));
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-chief-0"));
}

Json WholeJob(int limit) {
  return With(Job({{"Chief", Replicas(1, "OnFailure")},
                   {"PS", Replicas(1, "OnFailure")},
                   {"Worker", Replicas(2, "ExitCode")}},
                  {{"backoffLimit", limit}}),
              "muster/restart-scope", "job");
}

TEST(RestartScopeTest, OneRestartReplacesAllPods) {
  World world(WholeJob(2));
  world.Settle();
  // Without restarts in place, the operator sees every failure.
  EXPECT_EQ(world.pods()["j-ps-0"]["spec"]["restartPolicy"], "Never");
  world.SetAll("Running");
  world.SetPhase("j-worker-0", "Succeeded");
  world.Settle();
  const auto first = UidsOf(world);
  world.SetPhase("j-worker-1", "Failed", 137);
  world.SetPhase("j-ps-0", "Failed", 1);
  world.ReconcileOnce();
  EXPECT_EQ(world.Conditions(), "Created Restarting");
  EXPECT_THAT(world.Pods(), IsEmpty());  // none is created before all are gone
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(4));
  EXPECT_EQ(Left(world, first), 0);
  EXPECT_EQ(world.status()["restarts"].size(), 1U);
  EXPECT_EQ(world.status()["restarts"]["job"]["count"], 1);
  EXPECT_FALSE(world.status().contains("succeeded"));
  world.SetAll("Running");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Running");
  world.SetPhase("j-chief-0", "Failed", 1);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
  EXPECT_EQ(world.status()["conditions"].back()["reason"], "BackoffLimitExceeded");
  EXPECT_THAT(world.Pods(), SizeIs(4));  // cleanPodPolicy None
}

TEST(RestartScopeTest, ATerminatingPodDelaysTheRestart) {
  World world(WholeJob(3));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  world.pods()["j-ps-0"]["metadata"]["deletionTimestamp"] =
      k8s::Timestamp(world.now() + absl::Seconds(30));
  world.SetPhase("j-worker-1", "Failed", 137);
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-ps-0"));
  world.Advance(absl::Minutes(2));
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(4));
}

TEST(RestartScopeTest, SameEndWhereverInterrupted) {
  ExpectSameEndWhereverInterrupted([] { return World(WholeJob(3)); },
                                   [](World& world, const std::function<void()>& settle) {
                                     settle();
                                     for (const char* pod : {"j-worker-1", "j-chief-0"}) {
                                       world.SetAll("Running");
                                       world.SetPhase("j-worker-0", "Succeeded");
                                       settle();
                                       const auto before = UidsOf(world);
                                       world.SetPhase(pod, "Failed", 137);
                                       settle();
                                       EXPECT_EQ(Left(world, before), 0);
                                     }
                                     world.SetPhase("j-chief-0", "Succeeded");
                                     settle();
                                     EXPECT_EQ(world.status()["restarts"]["job"]["count"], 2);
                                   });
}

TEST(StartOrderTest, RolesWaitForEarlierOnes) {
  Json ps = Replicas(2);
  ps["template"]["spec"]["containers"][0]["readinessProbe"] = {{"tcpSocket", {{"port", 2222}}}};
  World world(With(Job({{"Chief", Replicas(1)},
                        {"PS", ps},
                        {"Worker", Replicas(1)},
                        {"Evaluator", Replicas(1)}}),
                   "muster/start-order", "ps, worker,chief"));
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-evaluator-0", "j-ps-0", "j-ps-1"));
  EXPECT_THAT(world.Services(), SizeIs(5));
  world.SetAll("Running");
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(3));  // not ready yet
  for (const char* pod : {"j-ps-0", "j-ps-1"}) {
    world.pods()[pod]["status"]["conditions"] =
        Json::array({{{"type", "Ready"}, {"status", "True"}}});
  }
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-evaluator-0", "j-ps-0", "j-ps-1", "j-worker-0"));
  world.SetPhase("j-worker-0", "Running");
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(5));
}

TEST(StartOrderTest, SameEndWhereverInterrupted) {
  const Json job = With(Job({{"PS", Replicas(1)}, {"Worker", Replicas(2, "ExitCode")}}),
                        "muster/start-order", "ps,worker");
  ExpectSameEndWhereverInterrupted([&] { return World(job); },
                                   [](World& world, const std::function<void()>& settle) {
                                     settle();
                                     EXPECT_THAT(world.Pods(), ElementsAre("j-ps-0"));
                                     world.SetAll("Running");
                                     settle();
                                     EXPECT_THAT(world.Pods(), SizeIs(3));
                                   });
}

void ChangeImage(World& world, const char* image) {
  for (auto& [role, spec] : world.job()["spec"]["tfReplicaSpecs"].items()) {
    spec["template"]["spec"]["containers"][0]["image"] = image;
  }
}

int Updated(World& world, const std::string& image) {
  int updated = 0;
  for (const auto& [name, pod] : world.pods()) {
    if (pod["spec"]["containers"][0]["image"] == image) ++updated;
  }
  return updated;
}

Json UpdatedJob(const char* policy) {
  return With(
      Job({{"PS", Replicas(1)}, {"Worker", Replicas(3, "ExitCode")}}, {{"backoffLimit", 0}}),
      "muster/update", policy);
}

TEST(UpdateTest, RecreatesAllByDefault) {
  World world(Job({{"PS", Replicas(1)}, {"Worker", Replicas(3, "ExitCode")}},
                  {{"backoffLimit", 0}, {"cleanPodPolicy", "None"}}));
  world.Settle();
  world.SetAll("Running");
  world.SetPhase("j-worker-2", "Succeeded");
  world.Settle();
  const auto before = UidsOf(world);
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 4;
  world.Settle();
  EXPECT_EQ(Left(world, before), 4);  // the number of replicas is not part of the template
  ChangeImage(world, "tf:2");
  world.ReconcileOnce();
  EXPECT_THAT(world.Pods(), ElementsAre("j-worker-2"));  // it has succeeded
  world.Settle();
  EXPECT_EQ(Updated(world, "tf:2"), 4);
  EXPECT_FALSE(world.status().contains("restarts"));
  EXPECT_FALSE(IsFinished(world.status()));
}

TEST(UpdateTest, RollsOneByOne) {
  World world(UpdatedJob("rolling"));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  ChangeImage(world, "tf:2");
  for (int updated = 1; updated <= 4; ++updated) {
    world.Settle();
    EXPECT_THAT(world.Pods(), SizeIs(4));
    EXPECT_EQ(Updated(world, "tf:2"), updated);
    world.Settle();
    EXPECT_EQ(Updated(world, "tf:2"), updated);  // the last replacement does not run yet
    world.SetAll("Running");
  }
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Running");
  EXPECT_FALSE(world.status().contains("restarts"));
}

TEST(UpdateTest, ABrokenTemplateStopsTheRollout) {
  World world(UpdatedJob("rolling"));
  world.Settle();
  world.SetAll("Running");
  world.Settle();
  ChangeImage(world, "tf:wrong");
  world.Settle();
  world.SetPhase("j-ps-0", "Pending");
  world.Settle();
  EXPECT_EQ(Updated(world, "tf:wrong"), 1);
  ChangeImage(world, "tf:2");  // the broken pod is replaced first
  world.Settle();
  EXPECT_EQ(world.pods()["j-ps-0"]["spec"]["containers"][0]["image"], "tf:2");
  EXPECT_EQ(Updated(world, "tf:2"), 1);
}

TEST(UpdateTest, Never) {
  World world(UpdatedJob("never"));
  world.Settle();
  world.SetAll("Running");
  const auto before = UidsOf(world);
  ChangeImage(world, "tf:2");
  world.Settle();
  EXPECT_EQ(Left(world, before), 4);
}

TEST(UpdateTest, PodsWithoutATemplateHashStay) {
  World world(UpdatedJob("recreate"));
  world.Settle();
  for (auto& [name, pod] : world.pods()) pod["metadata"].erase("annotations");
  const auto before = UidsOf(world);
  ChangeImage(world, "tf:2");
  world.Settle();
  EXPECT_EQ(Left(world, before), 4);
}

TEST(UpdateTest, SameEndWhereverInterrupted) {
  for (const char* policy : {"recreate", "rolling"}) {
    ExpectSameEndWhereverInterrupted([&] { return World(UpdatedJob(policy)); },
                                     [](World& world, const std::function<void()>& settle) {
                                       settle();
                                       world.SetAll("Running");
                                       settle();
                                       ChangeImage(world, "tf:2");
                                       for (int i = 0; i < 5; ++i) {
                                         settle();
                                         world.SetAll("Running");
                                       }
                                       settle();
                                       EXPECT_EQ(Updated(world, "tf:2"), 4);
                                     });
  }
}

}  // namespace
}  // namespace muster::controller
