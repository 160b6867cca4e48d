#include "controller/rules/gang.h"

#include "controller/rules/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TfJobOptions With(GangScheduler scheduler, const std::string& name = "") {
  TfJobOptions options = World::DefaultOptions();
  options.gang = scheduler;
  options.gang_scheduler_name = name;
  return options;
}

Json GangJob(const Json& policy = nullptr) {
  Json run_policy = Json::object();
  if (!policy.is_null()) run_policy["schedulingPolicy"] = policy;
  return Job({{"PS", Replicas(1)}, {"Worker", Replicas(2, "ExitCode")}}, run_policy);
}

// Reconciles until the plan is empty, with a scheduler that admits the group.
void Settle(World& world, const char* phase = "Inqueue") {
  world.Settle();
  for (auto& [name, group] : world.pod_groups()) group["status"]["phase"] = phase;
  world.Settle();
}

TEST(GangTest, PodsWaitForTheAdmissionOfTheGroup) {
  World world(GangJob(), With(GangScheduler::kVolcano));
  world.Settle();
  EXPECT_THAT(world.PodGroups(), ElementsAre("j"));
  EXPECT_THAT(world.Pods(), IsEmpty());
  Settle(world, "Pending");
  EXPECT_THAT(world.Pods(), IsEmpty());
  Settle(world);
  EXPECT_THAT(world.Pods(), SizeIs(3));
  // A replacement waits only while the group is Pending, as in Kubeflow.
  world.pods().erase("j-worker-1");
  Settle(world, "Running");
  EXPECT_THAT(world.Pods(), SizeIs(3));
  Settle(world, "Pending");
  world.pods().erase("j-worker-1");
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(2));
  Settle(world, "Unknown");
  const Json& group = world.pod_groups()["j"];
  EXPECT_EQ(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(group["spec"],
            (Json{{"minMember", 3}, {"minResources", Json::object()}, {"queue", "default"}}));
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], "uid-job");
  const Json& pod = world.pods()["j-worker-1"];
  EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "j");
  EXPECT_EQ(pod["metadata"]["annotations"]["volcano.sh/task-spec"], "worker");
  EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
}

TEST(GangTest, TheSchedulerPluginsNeedNoAdmission) {
  World world(GangJob(), With(GangScheduler::kSchedulerPlugins));
  world.ReconcileOnce();
  EXPECT_THAT(world.PodGroups(), ElementsAre("j"));
  EXPECT_THAT(world.Pods(), IsEmpty());
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(3));
}

// Returns a template of containers with these requests and limits.
Json Containers(const std::vector<std::pair<Json, Json>>& resources) {
  Json containers = Json::array();
  for (const auto& [requests, limits] : resources) {
    containers.push_back({{"name", containers.empty() ? "tensorflow" : "sidecar"},
                          {"image", "tf:1"},
                          {"resources", Json::object()}});
    if (!requests.is_null()) containers.back()["resources"]["requests"] = requests;
    if (!limits.is_null()) containers.back()["resources"]["limits"] = limits;
  }
  return containers;
}

TEST(GangTest, MinResourcesIsTheSumOfPodRequests) {
  for (const GangScheduler scheduler :
       {GangScheduler::kVolcano, GangScheduler::kSchedulerPlugins}) {
    Json job = GangJob();
    Json& specs = job["spec"]["tfReplicaSpecs"];
    specs["PS"]["template"]["spec"]["containers"] =
        Containers({{{{"cpu", "500m"}, {"memory", "1Gi"}}, nullptr}});
    specs["Worker"]["template"]["spec"]["containers"] = Containers(
        {{{{"cpu", 1}}, {{"cpu", 2}, {"nvidia.com/gpu", "1"}}}, {nullptr, {{"memory", "256Mi"}}}});
    World world(job, With(scheduler));
    Settle(world);
    EXPECT_EQ(world.pod_groups()["j"]["spec"]["minResources"],
              (Json{{"cpu", "2500m"}, {"memory", "1536Mi"}, {"nvidia.com/gpu", "2"}}));
    // With a lower minAvailable only the first replicas count.
    world.job()["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 2;
    Settle(world);
    EXPECT_EQ(world.pod_groups()["j"]["spec"]["minMember"], 2);
    EXPECT_EQ(world.pod_groups()["j"]["spec"]["minResources"],
              (Json{{"cpu", "1500m"}, {"memory", "1280Mi"}, {"nvidia.com/gpu", "1"}}));
  }
}

TEST(GangTest, CopiesAnnotationsToTheGroup) {
  Json job = GangJob();
  job["metadata"]["annotations"] = {{"volcano.sh/preemptable", "true"},
                                    {"muster/update", "never"},
                                    {"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  World world(job, With(GangScheduler::kVolcano));
  world.Settle();
  EXPECT_EQ(world.pod_groups()["j"]["metadata"]["annotations"],
            (Json{{"volcano.sh/preemptable", "true"}}));
}

TEST(GangTest, APendingGroupIsNotCreatedAgain) {
  Json job = GangJob();
  job["metadata"]["uid"] = "uid-job";
  job["metadata"]["namespace"] = "default";
  const Plan plan = Reconcile({.job = job, .pending_creations = {{Kind::kPodGroup, "j"}}},
                              With(GangScheduler::kVolcano), absl::Now());
  EXPECT_THAT(plan.actions, SizeIs(3));
  for (const Action& action : plan.actions) {
    EXPECT_EQ(std::get<Create>(action).kind, Kind::kService);
  }
}

TEST(GangTest, AppliesTheSchedulingPolicy) {
  const Json policy = {{"minAvailable", 2},
                       {"queue", "q"},
                       {"priorityClass", "high"},
                       {"minResources", {{"cpu", 2}}},
                       {"scheduleTimeoutSeconds", 30}};
  World volcano(GangJob(policy), With(GangScheduler::kVolcano));
  Settle(volcano);
  EXPECT_EQ(volcano.pod_groups()["j"]["spec"], (Json{{"minMember", 2},
                                                     {"queue", "q"},
                                                     {"priorityClassName", "high"},
                                                     {"minResources", {{"cpu", 2}}}}));
  World plugins(GangJob(policy), With(GangScheduler::kSchedulerPlugins));
  Settle(plugins);
  EXPECT_EQ(plugins.pod_groups()["j"]["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(
      plugins.pod_groups()["j"]["spec"],
      (Json{{"minMember", 2}, {"minResources", {{"cpu", 2}}}, {"scheduleTimeoutSeconds", 30}}));
  const Json& pod = plugins.pods()["j-ps-0"];
  EXPECT_EQ(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "j");
  EXPECT_EQ(pod["spec"]["schedulerName"], "scheduler-plugins-scheduler");
}

TEST(GangTest, KeepsTheSchedulerOfATemplate) {
  Json job = GangJob();
  job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["schedulerName"] = "own";
  World world(job, With(GangScheduler::kSchedulerPlugins, "gangs"));
  Settle(world);
  EXPECT_EQ(world.pods()["j-ps-0"]["spec"]["schedulerName"], "own");
  EXPECT_EQ(world.pods()["j-worker-0"]["spec"]["schedulerName"], "gangs");
}

TEST(GangTest, TheGroupFollowsTheJob) {
  World world(GangJob({{"minResources", {{"cpu", 2}, {"memory", "1Gi"}}}}),
              With(GangScheduler::kVolcano));
  Settle(world);
  world.pod_groups()["j"]["spec"]["queue"] = "default";  // set by the scheduler
  world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 4;
  world.job()["spec"]["runPolicy"]["schedulingPolicy"]["minResources"] = {{"cpu", 3}};
  Settle(world);
  EXPECT_EQ(world.pod_groups()["j"]["spec"],
            (Json{{"minMember", 5}, {"minResources", {{"cpu", 3}}}, {"queue", "default"}}));
  // A replacement must not wait for a task that has succeeded.
  world.SetAll("Running");
  world.SetPhase("j-worker-3", "Succeeded");
  Settle(world);
  EXPECT_EQ(world.pod_groups()["j"]["spec"]["minMember"], 4);
}

TEST(GangTest, RolesThatStartLaterAreNotMembers) {
  Json job = GangJob();
  job["metadata"]["annotations"]["muster/start-order"] = "ps,worker";
  World world(job, With(GangScheduler::kVolcano));
  Settle(world);
  EXPECT_EQ(world.pod_groups()["j"]["spec"]["minMember"], 1);
}

TEST(GangTest, AJobWithoutPodsHasNoGroup) {
  World world(GangJob(), With(GangScheduler::kVolcano));
  Settle(world);
  world.job()["spec"]["runPolicy"]["suspend"] = true;
  Settle(world);
  EXPECT_THAT(world.PodGroups(), IsEmpty());
  world.job()["spec"]["runPolicy"]["suspend"] = false;
  Settle(world);
  EXPECT_THAT(world.PodGroups(), ElementsAre("j"));
  world.SetPhase("j-worker-0", "Succeeded");
  Settle(world);
  EXPECT_THAT(world.PodGroups(), IsEmpty());
}

TEST(GangTest, AGroupOfAnotherOwnerIsUnchanged) {
  World world(GangJob(), With(GangScheduler::kVolcano));
  world.pod_groups()["j"] = {{"metadata", {{"name", "j"}, {"uid", "u"}}}, {"spec", {}}};
  world.Settle();
  EXPECT_THAT(world.Pods(), IsEmpty());
  EXPECT_TRUE(world.HasEvent("FailedCreatePodGroup"));
  world.job()["spec"]["runPolicy"]["suspend"] = true;
  Settle(world);
  EXPECT_THAT(world.PodGroups(), ElementsAre("j"));
}

TEST(GangTest, SameEndWhereverInterrupted) {
  for (const GangScheduler scheduler :
       {GangScheduler::kVolcano, GangScheduler::kSchedulerPlugins}) {
    ExpectSameEndWhereverInterrupted([&] { return World(GangJob(), With(scheduler)); },
                                     [](World& world, const std::function<void()>& settle) {
                                       settle();
                                       world.pod_groups()["j"]["status"]["phase"] = "Inqueue";
                                       settle();
                                       world.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] =
                                           3;
                                       settle();
                                       EXPECT_EQ(world.pod_groups()["j"]["spec"]["minMember"], 4);
                                       world.SetAll("Running");
                                       world.SetPhase("j-worker-1", "Failed", 137);
                                       settle();
                                       world.SetPhase("j-worker-0", "Succeeded");
                                       settle();
                                     });
  }
}

}  // namespace
}  // namespace muster::controller
