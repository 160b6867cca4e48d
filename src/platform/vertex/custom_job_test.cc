#include "platform/vertex/custom_job.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/format/parse.h"
#include "platform/vertex/agent.h"

namespace muster::vertex {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

job::JobSpec Job(const std::string& roles, const std::string& rest = "") {
  const auto spec =
      job::ParseJob("name: j\ncommand: [python3, train.py]\nroles: " + roles + "\n" + rest,
                    {.file_name = "job.yaml", .working_dir = "/w"});
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(job::JobSpec());
}

job::Submission Placed(job::JobSpec spec, job::VertexTarget target) {
  target.project = "test-proj";
  if (target.image.empty()) target.image = "i:1";
  target.region = "us-central1";
  target.bucket = "b";
  target.run.folder = "gs://b/muster_job1";
  job::Submission submission{.id = "job1", .spec = std::move(spec)};
  submission.target = target;
  return submission;
}

// Returns the worker pools of the request body.
Json PoolsIn(const job::Submission& submission) {
  const auto body = CustomJobOf(submission, "1.0");
  EXPECT_TRUE(body.ok()) << body.status();
  return body.ok() ? (*body)["jobSpec"]["workerPoolSpecs"] : Json();
}

std::string Rejection(const job::Submission& submission) {
  const auto body = CustomJobOf(submission, "1.0");
  EXPECT_EQ(body.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(body.status().message());
}

TEST(VertexCustomJob, ASingleTaskJobMatchesTheOfficialClient) {
  const auto body = CustomJobOf(Placed(Job("{worker: {command: [muster-trainer]}}"),
                                       {.tier = "BASIC",
                                        .image = "gcr.io/test-proj/img:1",
                                        .run = {.tries = {"given-up", "n1"}, .run_sha256 = "5ha"}}),
                                "1.0");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, Json::parse(R"({
    "displayName": "job1",
    "jobSpec": {
      "workerPoolSpecs": [{
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {
          "imageUri": "gcr.io/test-proj/img:1",
          "command": ["muster", "vertex-task"],
          "args": ["gs://b/muster_job1", "n1", "5ha"]
        }
      }],
      "baseOutputDirectory": {"outputUriPrefix": "gs://b/muster_job1"}
    },
    "labels": {"muster_job": "job1", "muster_run": "n1",
               "muster_folder": "689b73067c1a50c88ef8d940d9ea635f"}
  })"));
}

TEST(VertexCustomJob, MusterAgentStartsTheUsersPrograms) {
  const Json container = PoolsIn(Placed(
      Job("{worker: {}}"),
      {.tier = "BASIC",
       .run = {.tries = {"n1"}, .run_sha256 = "5ha", .agent_sha256 = "a9e"}}))[0]["containerSpec"];
  ASSERT_EQ(container["command"].size(), 4U);
  EXPECT_EQ(container["command"][0], "/bin/sh");
  EXPECT_EQ(container["command"][1], "-c");
  EXPECT_EQ(container["args"], Json({"/gcs/b/muster_packages/a9e-muster-agent", "a9e",
                                     "gs://b/muster_job1", "n1", "5ha"}));
}

TEST(VertexCustomJob, TheTrainerAndOwnProgramsStartDifferently) {
  const job::JobSpec mixed = Job("{chief: {}, worker: {command: [muster-trainer]}}");
  const Json pools = PoolsIn(Placed(mixed, {.tier = "STANDARD_1"}));
  EXPECT_EQ(pools[0]["containerSpec"]["command"][0], "/bin/sh");
  EXPECT_EQ(pools[1]["containerSpec"]["command"], Json({"muster", "vertex-task"}));
  EXPECT_TRUE(NeedsAgent(mixed));
  EXPECT_FALSE(NeedsAgent(Job("{worker: {command: [muster-trainer]}}")));
  // The built-in trainer is the default, and its image has no TensorFlow for a server.
  EXPECT_TRUE(RunsTrainer({.name = "worker"}));
  EXPECT_TRUE(RunsTrainer({.name = "ps", .server = job::Server::kTrainer}));
  EXPECT_FALSE(RunsTrainer({.name = "ps", .server = job::Server::kTensorFlow}));
}

TEST(VertexCustomJob, OtherStorageIsNotPassedToVertexAi) {
  job::Submission submission = Placed(Job("{worker: {}}"), {.tier = "BASIC"});
  job::MutableTargetOf<job::VertexTarget>(submission).run.folder = "s3://other/run";
  const auto body = CustomJobOf(submission, "1.0");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ((*body)["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"], "gs://b/muster_job1");
  // A training outside the bucket still has the label of its folder; an evaluation has none.
  EXPECT_EQ((*body)["labels"][kFolderLabel], FolderLabel("s3://other/run/"));
  submission.spec.roles.front().name = "evaluator";
  const auto measuring = CustomJobOf(submission, "1.0");
  ASSERT_TRUE(measuring.ok()) << measuring.status();
  EXPECT_FALSE((*measuring)["labels"].contains(kFolderLabel));
}

TEST(VertexCustomJob, AnEmptyPoolKeepsItsIndex) {
  const Json pools = PoolsIn(Placed(Job("{chief: {}, ps: {replicas: 2}}"), {.tier = "STANDARD_1"}));
  ASSERT_EQ(pools.size(), 3U);
  EXPECT_EQ(pools[1], Json::object());
  EXPECT_EQ(pools[2]["replicaCount"], "2");
  EXPECT_EQ(pools[0]["machineSpec"], Json({{"machineType", "n1-highcpu-16"}}));
  EXPECT_EQ(pools[2]["machineSpec"], Json({{"machineType", "n1-standard-4"}}));
}

TEST(VertexCustomJob, TheFirstWorkerLeadsWithoutAChief) {
  const Json pools = PoolsIn(
      Placed(Job("{worker: {replicas: 3}}"), {.tier = "CUSTOM", .master_type = "standard_v100"}));
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0]["replicaCount"], "1");
  EXPECT_EQ(pools[0]["machineSpec"], Json::parse(R"({"machineType": "n1-standard-8",
      "acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 1})"));
  EXPECT_EQ(pools[1]["replicaCount"], "2");
  EXPECT_EQ(pools[1]["machineSpec"]["acceleratorType"], "NVIDIA_TESLA_T4");
}

TEST(VertexCustomJob, OptionsSetCustomMachines) {
  const Json pools =
      PoolsIn(Placed(Job("{chief: {}, worker: {replicas: 2}, ps: {}, evaluator: {}}"),
                     {.tier = "CUSTOM",
                      .master_type = "complex_model_m",
                      .worker_type = "g2-standard-8",
                      .parameter_server_type = "n1-highmem-16"}));
  ASSERT_EQ(pools.size(), 4U);
  EXPECT_EQ(pools[0]["machineSpec"]["machineType"], "n1-highcpu-16");
  EXPECT_EQ(pools[1]["machineSpec"]["acceleratorType"], "NVIDIA_L4");
  EXPECT_EQ(pools[2]["machineSpec"]["machineType"], "n1-highmem-16");
  EXPECT_EQ(pools[3]["machineSpec"]["machineType"], "n1-highcpu-16");
}

TEST(VertexCustomJob, CustomMachinesHaveDefaults) {
  const Json pools = PoolsIn(Placed(Job("{chief: {}, worker: {}, ps: {}}"), {.tier = "CUSTOM"}));
  ASSERT_EQ(pools.size(), 3U);
  EXPECT_EQ(pools[0]["machineSpec"]["acceleratorType"], "NVIDIA_TESLA_T4");
  EXPECT_EQ(pools[1]["machineSpec"]["acceleratorType"], "NVIDIA_TESLA_T4");
  EXPECT_EQ(pools[2]["machineSpec"], Json({{"machineType", "n1-highmem-8"}}));
}

TEST(VertexCustomJob, PassesDeadlineAndRestartScopeToVertexAi) {
  const auto body =
      CustomJobOf(Placed(Job("{worker: {}}", "policies: {deadline: 90m, restart_scope: job}\n"),
                         {.tier = "BASIC"}),
                  "1.0");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ((*body)["jobSpec"]["scheduling"],
            Json::parse(R"({"timeout": "5400s", "restartJobOnWorkerRestart": true})"));
}

TEST(VertexCustomJob, TheImageIsThatOfTheRoleElseTheOptionElseTheProject) {
  const job::VertexTarget target{.project = "test-proj", .region = "us-central1"};
  EXPECT_EQ(ImageOf({.name = "worker"}, target, "1.0").value(),
            "us-central1-docker.pkg.dev/test-proj/muster/muster-vertex:1.0");
  EXPECT_THAT(
      std::string(ImageOf({.name = "w", .command = {"python3"}}, target, "1").status().message()),
      HasSubstr("role 'w' runs a program of yours and has no image"));
  job::VertexTarget in_repository = target;
  in_repository.image_repository = "r.example.com/ml";
  EXPECT_EQ(ImageOf({.name = "worker"}, in_repository, "1.0").value(),
            "r.example.com/ml/muster-vertex:1.0");
  EXPECT_FALSE(ImageOf({.name = "w", .command = {"python3"}}, in_repository, "1").ok());
  const Json pools = PoolsIn(
      Placed(Job("{chief: {image: 'x:1'}, worker: {}}"), {.tier = "STANDARD_1", .image = "y:2"}));
  EXPECT_EQ(pools[0]["containerSpec"]["imageUri"], "x:1");
  EXPECT_EQ(pools[1]["containerSpec"]["imageUri"], "y:2");
}

TEST(VertexCustomJob, OptionsThatDoNotApplyAreErrors) {
  const job::JobSpec spec = Job("{chief: {}, worker: {}}");
  EXPECT_THAT(Rejection(Placed(spec, {.tier = "STANDARD_1", .worker_type = "standard"})),
              HasSubstr("--worker-type requires --scale-tier CUSTOM"));
  EXPECT_THAT(Rejection(Placed(spec, {.tier = "STANDARD_1", .workers = 1})),
              HasSubstr("--worker-count requires --scale-tier CUSTOM"));
  EXPECT_THAT(Rejection(Placed(spec, {.tier = "CUSTOM",
                                      .master_type = "standard",
                                      .parameter_server_type = "standard"})),
              HasSubstr("--parameter-server-type: the job has no ps"));
  EXPECT_THAT(Rejection(Placed(spec, {.tier = "BASIC_GPU"})), HasSubstr("has one machine"));
  EXPECT_THAT(Rejection(Placed(Job("{worker: {replicas: 6}}"), {.tier = "STANDARD_1"})),
              HasSubstr("at most 4 workers"));
}

TEST(VertexCustomJob, IdsMustBeValidLabels) {
  EXPECT_TRUE(CheckJobId("train_20260102_030405").ok());
  for (const char* wrong : {"", "1x", "Train", "a b", "a/b", "ä"}) {
    EXPECT_FALSE(CheckJobId(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(CheckJobId(std::string(64, 'a')).ok());
}

TEST(VertexCustomJob, UnsupportedFieldsAreListed) {
  EXPECT_THAT(LimitsOf(Job("{chief: {}, worker: {replicas: 2}, ps: {}, evaluator: {}}")),
              IsEmpty());
  const auto limits =
      LimitsOf(Job("{chief: {}, worker: {resources: {cpus: 2}, port: 3000}, extra: {}}",
                   "policies: {success: all_workers, max_restarts: 5, stop_grace: 1m}\n"));
  std::string all;
  int fatal = 0;
  for (const platform::Limit& limit : limits) {
    all += limit.what + "\n";
    fatal += limit.fatal ? 1 : 0;
  }
  EXPECT_EQ(fatal, 1);
  EXPECT_THAT(all, HasSubstr("role 'extra'"));
  EXPECT_THAT(all, HasSubstr("role 'worker': resources"));
  EXPECT_THAT(all, HasSubstr("role 'worker': port"));
  EXPECT_THAT(all, HasSubstr("policies: success"));
  EXPECT_THAT(all, HasSubstr("policies: max_restarts"));
  EXPECT_THAT(all, HasSubstr("policies: stop_grace"));
}

TEST(VertexPools, CLUSTER_SPECIdentifiesTheTask) {
  const job::JobSpec spec = Job("{worker: {replicas: 3}, ps: {}}");
  const auto member = ReadClusterSpec(spec, R"({"cluster": {"workerpool0": ["a:2222"],
      "workerpool1": ["b:2222", "c:2222"], "workerpool2": ["d:2222"]}, "environment": "cloud",
      "task": {"type": "workerpool1", "index": 1}})");
  ASSERT_TRUE(member.ok()) << member.status();
  EXPECT_EQ(member->self, (cluster::TaskId{"worker", 2}));
  EXPECT_EQ(member->cluster.Hosts("worker"), "a:2222,b:2222,c:2222");
  EXPECT_EQ(member->cluster.Hosts("ps"), "d:2222");
}

TEST(VertexPools, RejectsTheCLUSTER_SPECOfAnotherJob) {
  const job::JobSpec spec = Job("{worker: {replicas: 2}}");
  for (const char* wrong :
       {"", "x", "[]", "{}", R"({"cluster": [], "task": {}})",
        R"({"cluster": {"workerpool0": ["a:1"]}, "task": {"type": "workerpool0", "index": 0}})",
        R"({"cluster": {"workerpool0": ["a:1"], "workerpool1": [7]},
            "task": {"type": "workerpool0", "index": 0}})",
        R"({"cluster": {"workerpool0": ["a:1"], "workerpool1": ["b:1"]},
            "task": {"type": "workerpool1", "index": 5}})",
        R"({"cluster": {"workerpool0": ["a:1"], "workerpool1": ["b:1"]},
            "task": {"type": "workerpool9", "index": 0}})"}) {
    EXPECT_EQ(ReadClusterSpec(spec, wrong).status().code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
  // A job of one task needs no CLUSTER_SPEC.
  EXPECT_TRUE(ReadClusterSpec(Job("{worker: {}}"), "").ok());
}

}  // namespace
}  // namespace muster::vertex
