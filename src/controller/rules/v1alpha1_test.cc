// The rules for jobs of tensorflow.org/v1alpha1, where they differ.
#include "absl/strings/str_cat.h"
#include "controller/rules/world_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

Json Replica(const char* type, int count) {
  return {{"tfReplicaType", type},
          {"replicas", count},
          {"template",
           {{"spec",
             {{"containers", {{{"name", "tensorflow"}, {"image", "tf:1"}}}},
              {"restartPolicy", "OnFailure"}}}}}};
}

// Returns a job of a master, two workers and a PS without a template.
Json OldJob() {
  return {{"apiVersion", "tensorflow.org/v1alpha1"},
          {"kind", "TfJob"},
          {"metadata", {{"name", "mnist"}}},
          {"spec",
           {{"RuntimeId", "5oz2"},
            {"replicaSpecs",
             {Replica("MASTER", 1), Replica("WORKER", 2), {{"tfReplicaType", "PS"}}}}}}};
}

TEST(V1Alpha1Test, NamesAddressesAndTfConfig) {
  World world(OldJob());
  world.Settle();
  EXPECT_THAT(world.Pods(), ElementsAre("mnist-master-5oz2-0", "mnist-ps-5oz2-0",
                                        "mnist-worker-5oz2-0", "mnist-worker-5oz2-1"));
  EXPECT_EQ(world.Services(), world.Pods());
  EXPECT_EQ(world.EnvOf("mnist-worker-5oz2-1")["TF_CONFIG"],
            R"({"cluster":{"master":["mnist-master-5oz2-0:2222"],"ps":["mnist-ps-5oz2-0:2222"],)"
            R"("worker":["mnist-worker-5oz2-0:2222","mnist-worker-5oz2-1:2222"]},)"
            R"("task":{"type":"worker","index":1},"environment":"cloud"})");
  const Json& metadata = world.pods()["mnist-worker-5oz2-1"]["metadata"];
  EXPECT_EQ(metadata["ownerReferences"][0]["apiVersion"], "tensorflow.org/v1alpha1");
  EXPECT_EQ(metadata["ownerReferences"][0]["kind"], "TfJob");
  for (const auto& [key, value] : std::map<std::string, std::string>{{"tensorflow.org", ""},
                                                                     {"tf_job_name", "mnist"},
                                                                     {"job_type", "WORKER"},
                                                                     {"runtime_id", "5oz2"},
                                                                     {"task_index", "1"}}) {
    ASSERT_TRUE(metadata["labels"].contains(key)) << key;
    EXPECT_EQ(metadata["labels"][key], value) << key;
  }
  EXPECT_FALSE(world.HasEvent("SetPodTemplateRestartPolicy"));
}

TEST(V1Alpha1Test, TheDefaultRuntimeIdIsStable) {
  Json job = OldJob();
  job["spec"].erase("RuntimeId");
  job["metadata"]["name"] = std::string(50, 'a');
  World world(job);
  World again(job);
  world.Settle();
  again.Settle();
  EXPECT_EQ(world.Pods(), again.Pods());
  EXPECT_THAT(world.Pods()[0],
              MatchesRegex(absl::StrCat(std::string(40, 'a'), "-master-[0-9a-z]{4}-0")));
  EXPECT_EQ(world.job()["spec"], job["spec"]);
}

TEST(V1Alpha1Test, KindsDoNotShareLabels) {
  Json job = OldJob();
  World world(job);
  world.Settle();
  World other(Job({{"Master", Replicas(1)}, {"Worker", Replicas(1)}}));
  other.job()["metadata"]["name"] = "mnist";
  other.Settle();
  const Json selector = other.services()["mnist-worker-0"]["spec"]["selector"];
  const Json& labels = world.pods()["mnist-worker-5oz2-0"]["metadata"]["labels"];
  bool selected = true;
  for (const auto& [key, value] : selector.items()) selected &= labels.value(key, Json()) == value;
  EXPECT_FALSE(selected);
}

TEST(V1Alpha1Test, ADefaultPsIsATensorflowServer) {
  World world(OldJob());
  world.Settle();
  const Json& spec = world.pods()["mnist-ps-5oz2-0"]["spec"];
  const Json& container = spec["containers"][0];
  EXPECT_EQ(container["name"], "tensorflow");
  EXPECT_EQ(container["image"], "tensorflow/tensorflow:1.3.0");
  EXPECT_EQ(container["command"], Json::array({"python", "/ps-server/tf_server.py"}));
  EXPECT_EQ(world.TfConfigOf("mnist-ps-5oz2-0")["task"], (Json{{"type", "ps"}, {"index", 0}}));
  ASSERT_THAT(world.ConfigMaps(), SizeIs(1));
  const Json& config = world.config_maps().begin()->second;
  EXPECT_THAT(config["data"]["tf_server.py"].get<std::string>(), HasSubstr("train.Server("));
  EXPECT_EQ(config["metadata"]["ownerReferences"][0]["uid"], "uid-job");
  EXPECT_EQ(spec["volumes"].back()["configMap"]["name"], config["metadata"]["name"]);
  EXPECT_EQ(container["volumeMounts"].back()["mountPath"], "/ps-server");

  world.config_maps().clear();  // deleted by mistake
  world.Settle();
  EXPECT_THAT(world.ConfigMaps(), SizeIs(1));
}

TEST(V1Alpha1Test, ADefaultPsRunsTheImageOfTheFile) {
  Json job = OldJob();
  job["spec"]["tfImage"] = "my/tf:2";
  World world(job);
  world.Settle();
  EXPECT_EQ(world.pods()["mnist-ps-5oz2-0"]["spec"]["containers"][0]["image"], "my/tf:2");
}

TEST(V1Alpha1Test, ADefaultPsOfTrainersIsATrainer) {
  Json job = OldJob();
  for (int i : {0, 1}) {
    job["spec"]["replicaSpecs"][i]["template"]["spec"]["containers"][0]["image"] =
        "registry/muster-trainer:7";
  }
  World world(job);
  world.Settle();
  const Json& container = world.pods()["mnist-ps-5oz2-0"]["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "registry/muster-trainer:7");
  EXPECT_EQ(container["command"], Json::array({"muster-trainer"}));
  EXPECT_THAT(world.ConfigMaps(), IsEmpty());
}

TEST(V1Alpha1Test, ADefaultPsMayHaveAStoredTemplate) {
  Json job = OldJob();
  Json ps = Replica("PS", 1);
  ps["IsDefaultPS"] = true;
  Json& stored = ps["template"]["spec"];
  stored["nodeSelector"] = {{"disk", "ssd"}};
  stored["containers"][0]["image"] = "tensorflow/tensorflow:1.4.0";
  stored["containers"][0]["volumeMounts"] = {
      {{"name", "ps-config-volume"}, {"mountPath", "/ps-server"}},
      {{"name", "data"}, {"mountPath", "/data"}}};
  stored["volumes"] = {{{"name", "ps-config-volume"}, {"configMap", {{"name", "cm-ps-5oz2"}}}},
                       {{"name", "data"}, {"emptyDir", Json::object()}}};
  job["spec"]["replicaSpecs"][2] = ps;
  World world(job);
  world.Settle();
  const Json& spec = world.pods()["mnist-ps-5oz2-0"]["spec"];
  EXPECT_EQ(spec["nodeSelector"], stored["nodeSelector"]);
  const Json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "tensorflow/tensorflow:1.4.0");
  EXPECT_EQ(container["command"], Json::array({"python", "/ps-server/tf_server.py"}));
  ASSERT_THAT(container["volumeMounts"], SizeIs(2));
  EXPECT_EQ(container["volumeMounts"][0]["mountPath"], "/data");
  ASSERT_THAT(spec["volumes"], SizeIs(2));
  EXPECT_EQ(spec["volumes"][1]["configMap"]["name"], world.ConfigMaps()[0]);
}

TEST(V1Alpha1Test, PhasesAndCleanup) {
  World world(OldJob());
  world.Settle();
  EXPECT_EQ(world.status()["phase"], "Creating");
  EXPECT_EQ(world.status()["state"], "Unknown");
  world.SetAll("Running");
  world.Settle();
  EXPECT_EQ(world.status()["phase"], "Running");
  EXPECT_EQ(world.status()["state"], "Running");
  world.SetPhase("mnist-master-5oz2-0", "Succeeded");
  world.ReconcileOnce();
  EXPECT_EQ(world.status()["phase"], "CleanUp");
  EXPECT_EQ(world.status()["state"], "Succeeded");
  world.Settle();
  EXPECT_EQ(world.status()["phase"], "Done");
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
  EXPECT_THAT(world.Pods(), ElementsAre("mnist-master-5oz2-0"));
}

TEST(V1Alpha1Test, PermanentFailures) {
  struct Case {
    int code;
    const char* reason;
    bool final;
  };
  for (const Case& one : {Case{1, "Error", true},
                          {127, "Error", true},
                          {137, "OOMKilled", true},
                          {137, "Error", false},
                          {128, "Error", false}}) {
    World world(OldJob());
    world.Settle();
    world.SetAll("Running");
    world.Settle();
    world.SetPhase("mnist-worker-5oz2-0", "Failed", one.code);
    Json& status = world.pods()["mnist-worker-5oz2-0"]["status"]["containerStatuses"][0];
    status["state"]["terminated"]["reason"] = one.reason;
    world.Settle();
    EXPECT_EQ(world.status()["state"], one.final ? "Failed" : "Running") << one.code << one.reason;
    EXPECT_EQ(world.Conditions(), one.final ? "Created Failed" : "Created Running");
    EXPECT_EQ(world.status().contains("restarts"), !one.final);
    EXPECT_EQ(world.status()["phase"], one.final ? "Done" : "Running");
  }
}

TEST(V1Alpha1Test, TheTerminationPolicyNamesTheChief) {
  Json job = OldJob();
  job["spec"]["terminationPolicy"] = {{"chief", {{"replicaName", "WORKER"}, {"replicaIndex", 1}}}};
  World world(job);
  world.Settle();
  world.SetAll("Running");
  world.SetPhase("mnist-master-5oz2-0", "Succeeded");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Running");
  world.SetPhase("mnist-worker-5oz2-1", "Succeeded");
  world.Settle();
  EXPECT_EQ(world.Conditions(), "Created Succeeded");
}

TEST(V1Alpha1Test, TensorboardLivesAsLongAsTheJobObject) {
  Json job = OldJob();
  job["spec"]["tensorboard"] = {{"logDir", "/logs"},
                                {"serviceType", "LoadBalancer"},
                                {"volumes", {{{"name", "v"}, {"emptyDir", Json::object()}}}},
                                {"volumeMounts", {{{"name", "v"}, {"mountPath", "/logs"}}}}};
  World world(job);
  world.Settle();
  const std::string name = "mnist-tensorboard-5oz2";
  ASSERT_TRUE(world.pods().contains(name));
  const Json pod = world.pods()[name]["spec"];
  EXPECT_EQ(pod["restartPolicy"], "Always");
  EXPECT_EQ(pod["containers"][0]["image"], "board:1");
  EXPECT_EQ(pod["containers"][0]["command"],
            Json::array({"tensorboard", "--logdir", "/logs", "--host", "0.0.0.0"}));
  EXPECT_EQ(pod["containers"][0]["volumeMounts"], job["spec"]["tensorboard"]["volumeMounts"]);
  EXPECT_EQ(pod["volumes"], job["spec"]["tensorboard"]["volumes"]);
  const Json service = world.services()[name]["spec"];
  EXPECT_EQ(service["type"], "LoadBalancer");
  EXPECT_EQ(service["ports"][0]["port"], 80);
  EXPECT_EQ(service["ports"][0]["targetPort"], 6006);

  world.SetAll("Running");
  world.Settle();
  const Json old = world.pods()[name]["metadata"]["uid"];
  world.SetPhase(name, "Failed");
  world.pods()[name]["status"]["reason"] = "Evicted";
  world.Settle();
  EXPECT_NE(world.pods()[name]["metadata"]["uid"], old);
  EXPECT_EQ(world.Conditions(), "Created Running");  // TensorBoard is not a task of the job
  world.SetPhase(name, "Running");
  world.SetPhase("mnist-master-5oz2-0", "Succeeded");
  world.Settle();
  EXPECT_EQ(world.status()["phase"], "Done");
  EXPECT_THAT(world.Pods(), ElementsAre("mnist-master-5oz2-0", name));
  EXPECT_THAT(world.Services(), ElementsAre("mnist-master-5oz2-0", name));
  world.pods().erase(name);  // lost with its node
  world.Settle();
  EXPECT_THAT(world.Pods(), SizeIs(2));
}

TEST(V1Alpha1Test, AnInvalidJobFails) {
  Json job = OldJob();
  job["spec"]["replicaSpecs"][0].erase("template");
  World world(job);
  world.Settle();
  EXPECT_EQ(world.status()["phase"], "Failed");
  EXPECT_EQ(world.status()["state"], "Failed");
  EXPECT_THAT(world.Pods(), IsEmpty());
  EXPECT_THAT(world.status()["conditions"][0]["message"].get<std::string>(),
              HasSubstr("the MASTER lacks 'template'"));
}

TEST(V1Alpha1Test, SameEndWhereverInterrupted) {
  Json job = OldJob();
  job["spec"]["tensorboard"] = {{"logDir", "/logs"}};
  ExpectSameEndWhereverInterrupted([&] { return World(job); },
                                   [](World& world, const std::function<void()>& settle) {
                                     settle();
                                     world.SetAll("Running");
                                     settle();
                                     world.SetPhase("mnist-worker-5oz2-0", "Failed", 137);
                                     settle();
                                     world.SetAll("Running");
                                     world.SetPhase("mnist-master-5oz2-0", "Succeeded");
                                     settle();
                                     EXPECT_EQ(world.status()["phase"], "Done");
                                   });
}

}  // namespace
}  // namespace muster::controller
