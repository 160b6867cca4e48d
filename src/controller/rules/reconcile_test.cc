#include "controller/rules/reconcile.h"

#include "absl/strings/ascii.h"
#include "controller/rules/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CreationTest, OneWorkerHasNoTfConfig) {
  World world(Job({{"Worker", Replicas(1)}}));
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-worker-0"));
  EXPECT_THAT(world.Services(), ElementsAre("j-worker-0"));
  EXPECT_TRUE(world.TfConfigOf("j-worker-0").is_null());
  EXPECT_EQ(world.Conditions(), "Created");
}

TEST(CreationTest, CreatesMissingObjects) {
  World world(Job({{"Worker", Replicas(4)}, {"PS", Replicas(2)}}));
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(6));
  EXPECT_THAT(world.Services(), SizeIs(6));
  const int writes = world.writes();
  world.Settle();
  EXPECT_EQ(world.writes(), writes);  // all pods are pending
  world.pods().erase("j-worker-2");
  world.services().erase("j-ps-1");
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(6));
  EXPECT_THAT(world.Services(), SizeIs(6));
  EXPECT_EQ(world.writes(), writes + 2);
}

TEST(CreationTest, PendingCreationsAreNotRepeated) {
  Json job = Job({{"Worker", Replicas(2)}});
  job["metadata"]["uid"] = "uid-job";
  job["metadata"]["namespace"] = "default";
  const Plan plan =
      Reconcile({.job = job,
                 .pending_creations = {{Kind::kPod, "j-worker-0"}, {Kind::kService, "j-worker-1"}}},
                World::DefaultOptions(), absl::Now());
  std::vector<std::pair<Kind, std::string>> made;
  for (const Action& action : plan.actions) {
    const auto& create = std::get<Create>(action);
    made.emplace_back(create.kind, create.name);
  }
  EXPECT_THAT(made, testing::UnorderedElementsAre(std::pair(Kind::kService, "j-worker-0"),
                                                  std::pair(Kind::kPod, "j-worker-1")));
}

TEST(CreationTest, NamesLabelsAndOwners) {
  Json chief = Replicas(1);
  chief["template"]["metadata"] = {{"labels", {{"team", "vision"}}}, {"annotations", {{"a", "b"}}}};
  World world(Job({{"CHIEF", chief}, {"worker", Replicas(1)}}));
  world.Settle();
  const Json& metadata = world.pods()["j-chief-0"]["metadata"];
  EXPECT_EQ(metadata["ownerReferences"], Json::array({{{"apiVersion", "kubeflow.org/v1"},
                                                       {"kind", "TFJob"},
                                                       {"name", "j"},
                                                       {"uid", "uid-job"},
                                                       {"controller", true},
                                                       {"blockOwnerDeletion", true}}}));
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"team", "vision"},
           {"training.kubeflow.org/operator-name", "tfjob-controller"},
           {"training.kubeflow.org/job-name", "j"},
           {"training.kubeflow.org/replica-type", "chief"},
           {"training.kubeflow.org/replica-index", "0"},
           {"training.kubeflow.org/job-role", "master"}}) {
    EXPECT_EQ(metadata["labels"].value(key, ""), value) << key;
  }
  EXPECT_EQ(metadata["annotations"]["a"], "b");
  EXPECT_FALSE(
      world.pods()["j-worker-0"]["metadata"]["labels"].contains("training.kubeflow.org/job-role"));
  const Json& service = world.services()["j-chief-0"]["spec"];
  EXPECT_EQ(service["clusterIP"], "None");
  EXPECT_THAT(service["selector"], SizeIs(4));
}

TEST(CreationTest, Ports) {
  Json worker = Replicas(2);
  worker["template"]["spec"]["containers"][0]["ports"] =
      Json::array({{{"name", "tfjob-port"}, {"containerPort", 1234}}});
  World world(Job({{"PS", Replicas(1)}, {"Worker", worker}}));
  world.Settle();
  EXPECT_EQ(world.services()["j-ps-0"]["spec"]["ports"][0]["port"], 2222);
  EXPECT_EQ(world.services()["j-worker-1"]["spec"]["ports"][0]["port"], 1234);
  EXPECT_EQ(world.pods()["j-ps-0"]["spec"]["containers"][0]["ports"][0]["containerPort"], 2222);
  EXPECT_THAT(world.pods()["j-worker-0"]["spec"]["containers"][0]["ports"], SizeIs(1));
}

TEST(TfConfigTest, DenseAndSparse) {
  World world(Job({{"Chief", Replicas(1)},
                   {"PS", Replicas(1)},
                   {"Worker", Replicas(2)},
                   {"Evaluator", Replicas(1)}}));
  world.Settle();
  EXPECT_EQ(world.EnvOf("j-worker-1")["TF_CONFIG"],
            R"({"cluster":{"chief":["j-chief-0.default.svc:2222"],)"
            R"("evaluator":["j-evaluator-0.default.svc:2222"],"ps":["j-ps-0.default.svc:2222"],)"
            R"("worker":["j-worker-0.default.svc:2222","j-worker-1.default.svc:2222"]},)"
            R"("task":{"type":"worker","index":1},"environment":"cloud"})");
  Json dynamic = Job({{"PS", Replicas(2)}, {"Worker", Replicas(2)}});
  dynamic["spec"]["enableDynamicWorker"] = true;
  World sparse(dynamic);
  sparse.Settle();
  EXPECT_THAT(sparse.TfConfigOf("j-worker-1")["cluster"]["ps"], SizeIs(2));
  EXPECT_THAT(sparse.TfConfigOf("j-ps-1").dump(), testing::Not(HasSubstr("j-ps-0")));
}

TEST(StatusTest, TheChiefDecides) {
  for (const char* role : {"Chief", "Master"}) {
    World world(Job({{role, Replicas(1)}, {"Worker", Replicas(1)}}));
    world.Settle();
    const std::string chief = std::string("j-") + (role[0] == 'C' ? "chief" : "master") + "-0";
    world.SetPhase("j-worker-0", "Running");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created");
    world.SetPhase(chief, "Running");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Running");
    EXPECT_EQ(world.status()["replicaStatuses"][role]["active"], 1);
    world.SetPhase("j-worker-0", "Succeeded");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Running");
    world.SetPhase(chief, "Succeeded");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Succeeded");
    EXPECT_TRUE(world.HasEvent("TFJobSucceeded"));
    world.SetPhase("j-worker-0", "Failed", 1);  // the first outcome is final
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Succeeded");
  }
}

TEST(StatusTest, WithoutAChiefTheFirstWorkerOrAllDecide) {
  for (const bool all : {false, true}) {
    Json job = Job({{"Worker", Replicas(4)}});
    if (all) job["spec"]["successPolicy"] = "AllWorkers";
    World world(job);
    world.Settle();
    world.SetAll("Running");
    world.SetPhase("j-worker-0", "Succeeded");
    world.Settle();
    EXPECT_EQ(world.Conditions(), all ? "Created Running" : "Created Succeeded");
    if (!all) continue;
    EXPECT_EQ(world.status()["replicaStatuses"]["Worker"],
              (Json{{"active", 3}, {"succeeded", 1}, {"failed", 0}}));
    world.pods().erase("j-worker-0");  // garbage-collected; the task does not run again
    world.Settle();
    EXPECT_THAT(world.Pods(), SizeIs(3));
    world.SetAll("Succeeded");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Succeeded");
  }
}

TEST(StatusTest, APermanentFailureOfAnyRoleFailsTheJob) {
  for (const char* role : {"PS", "Worker", "Evaluator"}) {
    World world(Job({{"Chief", Replicas(1)},
                     {"PS", Replicas(1)},
                     {"Worker", Replicas(1)},
                     {"Evaluator", Replicas(1)}}));
    world.Settle();
    world.SetAll("Running");
    world.SetPhase("j-" + absl::AsciiStrToLower(role) + "-0", "Failed", 3);
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Failed") << role;
    EXPECT_THAT(world.status()["conditions"].back()["message"].get<std::string>(),
                HasSubstr("failed with exit code 3"));
    EXPECT_THAT(world.Pods(), SizeIs(4));  // cleanPodPolicy None
    EXPECT_TRUE(world.status().contains("completionTime"));
  }
}

TEST(RestartTest, ByExitCode) {
  World world(Job({{"Worker", Replicas(2, "ExitCode")}}));
  world.Settle();
  EXPECT_EQ(world.pods()["j-worker-0"]["spec"]["restartPolicy"], "Never");
  world.SetAll("Running");
  world.Settle();
  const Json old = world.pods()["j-worker-0"]["metadata"]["uid"];
  world.SetPhase("j-worker-0", "Failed", 130);
  world.ReconcileOnce();
  EXPECT_EQ(world.Conditions(), "Created Restarting");
  world.Settle();
  EXPECT_NE(world.pods()["j-worker-0"]["metadata"]["uid"], old);
  EXPECT_EQ(world.status()["restarts"]["worker:0"]["count"], 1);
  EXPECT_TRUE(world.HasEvent("ExitedWithCode"));
  world.SetAll("Running");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Running");
  world.SetPhase("j-worker-0", "Failed", 1);
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
}

TEST(RestartTest, WarnsOfARestartPolicyInTheTemplate) {
  Json worker = Replicas(1, "OnFailure");
  worker["template"]["spec"]["restartPolicy"] = "Always";
  World world(Job({{"Worker", worker}}));
  world.Settle();
  EXPECT_EQ(world.pods()["j-worker-0"]["spec"]["restartPolicy"], "OnFailure");
  EXPECT_TRUE(world.HasEvent("SetPodTemplateRestartPolicy"));
}

TEST(RestartTest, ByPolicy) {
  for (const char* policy : {"OnFailure", "Always"}) {
    World world(Job({{"Worker", Replicas(1, policy)}}));
    world.Settle();
    EXPECT_EQ(world.pods()["j-worker-0"]["spec"]["restartPolicy"], policy);
    const Json old = world.pods()["j-worker-0"]["metadata"]["uid"];
    world.SetPhase("j-worker-0", "Failed", 1);
    world.Settle();
    EXPECT_NE(world.pods()["j-worker-0"]["metadata"]["uid"], old);
    EXPECT_THAT(world.Conditions(), HasSubstr("Restarting"));
  }
  World never(Job({{"Worker", Replicas(1)}}));
  never.Settle();
  never.SetPhase("j-worker-0", "Failed", 130);
  never.Settle();
  EXPECT_EQ(never.Conditions(), "Created Failed");
}

TEST(RestartTest, ReplacesAPodLostWithItsNode) {
  World world(Job({{"Worker", Replicas(1)}}));
  world.Settle();
  world.SetPhase("j-worker-0", "Failed");
  world.pods()["j-worker-0"]["status"]["reason"] = "Evicted";
  world.Settle();
  EXPECT_THAT(world.Conditions(), HasSubstr("Restarting"));
  EXPECT_EQ(world.pods()["j-worker-0"].value("status", Json()), Json());
  // A pod that stays because its node does not respond is deleted immediately in the end.
  const absl::Time gone = world.now() + absl::Seconds(30);
  world.pods()["j-worker-0"]["metadata"]["deletionTimestamp"] = k8s::Timestamp(gone);
  const Json old = world.pods()["j-worker-0"]["metadata"]["uid"];
  world.Settle();
  EXPECT_EQ(world.pods()["j-worker-0"]["metadata"]["uid"], old);
  EXPECT_EQ(world.requeue_at(), gone + absl::Minutes(1));
  world.Advance(absl::Seconds(90));
  world.Settle();
  EXPECT_NE(world.pods()["j-worker-0"]["metadata"]["uid"], old);
}

TEST(RestartTest, TheLimitCountsEveryRestart) {
  World world(Job({{"Worker", Replicas(2, "OnFailure")}}, {{"backoffLimit", 4}}));
  world.Settle();
  for (const char* pod : {"j-worker-0", "j-worker-1", "j-worker-0"}) {
    world.SetPhase(pod, "Failed", 1);
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Restarting");
  }
  world.SetAll("Running");
  world.pods()["j-worker-1"]["status"]["containerStatuses"] =
      Json::array({{{"name", "tensorflow"}, {"restartCount", 1}}});
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
  EXPECT_EQ(world.status()["conditions"].back()["reason"], "BackoffLimitExceeded");
  EXPECT_THAT(world.Pods(), SizeIs(2));
}

TEST(PolicyTest, CleaningUp) {
  const std::map<std::string, std::vector<std::string>> left = {
      {"None", {"j-chief-0", "j-ps-0", "j-worker-0", "j-worker-1"}},
      {"Running", {"j-chief-0", "j-worker-1"}},
      {"All", {}}};
  for (const auto& [policy, pods] : left) {
    World world(Job({{"Chief", Replicas(1)}, {"PS", Replicas(1)}, {"Worker", Replicas(2)}},
                    {{"cleanPodPolicy", policy}}));
    world.Settle();
    world.SetPhase("j-ps-0", "Running");
    world.SetPhase("j-worker-0", "Pending");
    world.SetPhase("j-worker-1", "Succeeded");
    world.SetPhase("j-chief-0", "Succeeded");
    world.Settle();
    EXPECT_EQ(world.Pods(), pods) << policy;
    EXPECT_EQ(world.Services(), pods) << policy;
  }
}

TEST(PolicyTest, TheDeadlineHasATimer) {
  World world(Job({{"Worker", Replicas(1)}}, {{"activeDeadlineSeconds", 60}}));
  world.Settle();
  EXPECT_EQ(world.requeue_at(), world.now() + absl::Seconds(60));
  world.Advance(absl::Seconds(59));
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created");
  world.Advance(absl::Seconds(1));
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Failed");
  EXPECT_EQ(world.status()["conditions"].back()["reason"], "DeadlineExceeded");
}

TEST(PolicyTest, ATimeToLive) {
  for (const int seconds : {0, 3}) {
    World world(Job({{"Worker", Replicas(1)}}, {{"ttlSecondsAfterFinished", seconds}}));
    world.Settle();
    world.SetPhase("j-worker-0", "Succeeded");
    world.Settle();
    EXPECT_EQ(world.deleted(), seconds == 0);
    EXPECT_EQ(world.requeue_at() == world.now() + absl::Seconds(3), seconds == 3);
    world.Advance(absl::Seconds(3));
    world.ReconcileOnce();
    EXPECT_TRUE(world.deleted());
  }
}

TEST(PolicyTest, SuspendedAndResumed) {
  Json job = Job({{"Worker", Replicas(2)}}, {{"suspend", true}});
  World world(job);
  world.Settle();
  EXPECT_THAT(world.Pods(), IsEmpty());
  EXPECT_EQ(world.Conditions(), "Created Suspended");
  EXPECT_FALSE(world.status().contains("startTime"));
  world.job()["spec"]["runPolicy"]["suspend"] = false;
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(2));
  EXPECT_EQ(world.Conditions(), "Created");
  EXPECT_TRUE(world.HasEvent("TFJobResumed"));
  world.SetAll("Running");
  world.Settle();
  world.job()["spec"]["runPolicy"]["suspend"] = true;
  world.Advance(absl::Seconds(10));
  world.Settle();
  EXPECT_THAT(world.Pods(), IsEmpty());
  EXPECT_THAT(world.Services(), IsEmpty());
  EXPECT_EQ(world.Conditions(), "Created Suspended");
  EXPECT_EQ(world.status()["replicaStatuses"]["Worker"]["active"], 0);
  // As in Kubeflow, startTime stays while the job is suspended and is reset when it resumes.
  EXPECT_EQ(world.status()["startTime"], k8s::Timestamp(world.now() - absl::Seconds(10)));
  world.job()["spec"]["runPolicy"]["suspend"] = false;
  world.Settle();
  EXPECT_EQ(world.status()["startTime"], k8s::Timestamp(world.now()));
}

TEST(PolicyTest, IgnoresJobsOfOtherManagers) {
  World world(Job({{"Worker", Replicas(1)}}, {{"managedBy", "kueue.x-k8s.io/multikueue"}}));
  world.Settle();
  EXPECT_EQ(world.writes(), 0);
}

// Without the webhook, the API server allows the change.
TEST(PolicyTest, KeepsRunningAJobWhoseManagerChanges) {
  World world(Job({{"Worker", Replicas(1)}}));
  world.Settle();
  world.job()["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  world.SetPhase("j-worker-0", "Succeeded");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
}

// Other clients may write anything to the status.
TEST(OtherTest, DropsMalformedMembersOfTheStatus) {
  for (const Json& status :
       {Json("x"), Json{{"conditions", "x"}}, Json{{"conditions", {5, nullptr}}},
        Json{{"conditions", {{{"type", 5}, {"status", true}}}}}, Json{{"restarts", {{"job", "x"}}}},
        Json{{"restarts", {{"worker:0", {{"count", "x"}}}, {"worker:1", {{"count", 1e300}}}}}},
        Json{{"restarts", 5}, {"succeeded", {{"a", 1}}}, {"startTime", 5}},
        Json{{"replicaStatuses", {5}}, {"completionTime", Json::array()}}}) {
    Json job = Job({{"Worker", Replicas(2, "OnFailure")}}, {{"backoffLimit", 3}});
    job["metadata"]["annotations"] = {{"muster/restart-scope", "job"}};
    job["status"] = status;
    World world(job);
    world.Settle();
    EXPECT_THAT(world.Pods(), SizeIs(2)) << status;
    world.SetPhase("j-worker-1", "Failed", 1);
    world.Settle();
    world.SetAll("Running");
    world.Settle();
    EXPECT_EQ(world.Conditions(), "Created Running") << status;
    EXPECT_EQ(world.status()["restarts"]["job"]["count"], 1) << status;
  }
}

TEST(OtherTest, AJobMayHaveParameterServersOnly) {
  World world(Job({{"PS", Replicas(2)}}));
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-ps-0", "j-ps-1"));
  world.SetAll("Running");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created");
}

TEST(OtherTest, AnOrphanKeepsItsOwners) {
  World world(Job({{"Worker", Replicas(1)}}));
  world.Settle();
  Json& metadata = world.pods()["j-worker-0"]["metadata"];
  const Json other = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "c"}, {"uid", "u-c"}};
  metadata["ownerReferences"] = Json::array({other});
  world.Settle();
  const Json owners = world.pods()["j-worker-0"]["metadata"]["ownerReferences"];
  EXPECT_THAT(owners, testing::Contains(other));
  EXPECT_EQ(k8s::ControllerOf(world.pods()["j-worker-0"]), "uid-job");
}

TEST(OtherTest, TemplatesTimesReplicasAreLimited) {
  Json many = Replicas(4000);
  many["template"]["spec"]["containers"][0]["args"] = {std::string(100'000, 'x')};
  World world(Job({{"Worker", many}}));
  world.Settle();
  EXPECT_THAT(world.Pods(), IsEmpty());
  EXPECT_EQ(world.Conditions(), "Failed");
  const Json failed = *k8s::FindTrueCondition(world.status(), "Failed");
  EXPECT_THAT(failed["message"].get<std::string>(),
              testing::StartsWith("spec.tfReplicaSpecs: the pod templates of all replicas "
                                  "together take"));
}

TEST(OtherTest, ScaledUpAndDown) {
  World world(Job({{"Worker", Replicas(2)}}));
  world.Settle();
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 4;
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(4));
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 1;
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("j-worker-0"));
  EXPECT_THAT(world.Services(), ElementsAre("j-worker-0"));
}

TEST(OtherTest, OrphansAndForeigners) {
  World world(Job({{"Worker", Replicas(2)}}));
  world.Settle();
  world.pods()["j-worker-0"]["metadata"].erase("ownerReferences");
  world.pods()["j-worker-1"]["metadata"]["ownerReferences"][0]["uid"] = "another";
  world.Settle();
  EXPECT_EQ(world.pods()["j-worker-0"]["metadata"]["ownerReferences"][0]["uid"], "uid-job");
  EXPECT_EQ(world.pods()["j-worker-1"]["metadata"]["ownerReferences"][0]["uid"], "another");
  const int writes = world.writes();
  world.job()["metadata"]["deletionTimestamp"] = k8s::Timestamp(world.now());
  world.pods().clear();
  world.Settle();
  EXPECT_EQ(world.writes(), writes);
}

TEST(OtherTest, AnInvalidJobFailsWithItsMistakes) {
  World world(Job({{"Wroker", Replicas(1)}}));
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Failed");
  EXPECT_THAT(world.status()["conditions"][0]["message"].get<std::string>(),
              HasSubstr("unknown role 'Wroker'"));
  EXPECT_THAT(world.Pods(), IsEmpty());
}

TEST(OtherTest, SameEndWhereverInterrupted) {
  const Json job = Job({{"PS", Replicas(1)}, {"Worker", Replicas(2, "ExitCode")}},
                       {{"backoffLimit", 3}, {"cleanPodPolicy", "Running"}});
  ExpectSameEndWhereverInterrupted([&] { return World(job); },
                                   [](World& world, const std::function<void()>& settle) {
                                     settle();
                                     world.SetAll("Running");
                                     settle();
                                     world.SetPhase("j-worker-1", "Failed", 137);
                                     settle();
                                     world.SetAll("Running");
                                     world.SetPhase("j-worker-0", "Failed", 137);
                                     settle();
                                     world.SetAll("Running");
                                     settle();
                                     world.SetPhase("j-worker-1", "Failed", 139);
                                     settle();
                                     EXPECT_EQ(world.Conditions(), "Created Failed");
                                   });
}

}  // namespace
}  // namespace muster::controller
