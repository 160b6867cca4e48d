#include "job/job_spec.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

JobSpec FullSpec() {
  JobSpec spec;
  spec.format = JobFormat::kTfJobV1;
  spec.name = "mnist";
  spec.model_dir = "gs://bucket/mnist";
  spec.env = {{"A", "1"}};
  spec.roles.push_back({.name = "chief",
                        .replicas = 1,
                        .command = {"/bin/sh", "-c", "train {index}"},
                        .server = Server::kTrainer,
                        .env = {{"B", "x=y"}},
                        .working_dir = "src",
                        .restart = RestartPolicy::kAlways,
                        .ready = Readiness::kListening,
                        .port = 2222,
                        .addresses = {"a:1"},
                        .resources = {.cpus = 0.5, .memory_bytes = int64_t{1} << 40, .gpus = 2},
                        .image = "tf:2",
                        .pod = {{"spec", {{"containers", nlohmann::json::array()}}}},
                        .kubernetes = {{"pod", {{"priority", 1}}}}});
  spec.roles.push_back({.name = "worker", .replicas = 3});
  spec.train = {{"model", "cnn"}, {"optimizer", {{"learning_rate", 0.001}}}};
  spec.notebook = {{"password", "0123"}};
  spec.kubernetes_namespace = "ml";
  spec.kubernetes = {{"runPolicy", {{"suspend", true}}}};
  spec.hosts.push_back({.name = "gpu1:2222",
                        .address = "gpu1",
                        .user = "me",
                        .port = 2222,
                        .key = "~/.ssh/id",
                        .slots = 0,
                        .roles = {"worker"}});
  spec.hosts.push_back({.name = "vm1", .address = "vm1"});
  spec.dynamic_workers = true;
  spec.policies = {.max_restarts = 7,
                   .restart_scope = RestartScope::kJob,
                   .backoff = absl::Milliseconds(250),
                   .max_backoff = absl::Minutes(5),
                   .start_timeout = absl::Seconds(90),
                   .deadline = absl::Hours(50),
                   .stop_grace = absl::ZeroDuration(),
                   .finish_grace = absl::Seconds(1),
                   .host_timeout = absl::Minutes(3),
                   .success = SuccessPolicy::kAllWorkers,
                   .stall = StallPolicy{absl::Minutes(10), StallAction::kReport},
                   .log_rotate_bytes = 4096,
                   .log_keep = 0};
  return spec;
}

TEST(JobSpecTest, JsonRoundTripKeepsEverything) {
  for (const JobSpec& spec : {FullSpec(), JobSpec{}}) {
    const std::string text = JobSpecToJson(spec).dump();
    const auto read = JobSpecFromJson(nlohmann::json::parse(text));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == spec) << text;
  }
}

TEST(JobSpecTest, AnotherDocumentIsAnError) {
  nlohmann::json json = JobSpecToJson(FullSpec());
  json["policies"]["backoff"] = "soon";
  EXPECT_EQ(JobSpecFromJson(json).status().message(),
            "not a stored job: 'soon' is not a duration such as 90s, 5m, 1h30m or 2d");
  json["policies"]["backoff"] = 5;
  EXPECT_FALSE(JobSpecFromJson(json).ok());
  json = JobSpecToJson(FullSpec());
  json["roles"][0]["restart"] = "sometimes";
  EXPECT_EQ(JobSpecFromJson(json).status().message(),
            "not a stored job: unknown value 'sometimes'");
  json.erase("roles");
  EXPECT_FALSE(JobSpecFromJson(json).ok());
  EXPECT_FALSE(JobSpecFromJson(nullptr).ok());
  EXPECT_FALSE(JobSpecFromJson(nlohmann::json::array()).ok());
}

TEST(JobSpecTest, TasksComeInTheFilesOrder) {
  const std::vector<cluster::TaskId> expected = {
      {"chief", 0}, {"worker", 0}, {"worker", 1}, {"worker", 2}};
  EXPECT_EQ(FullSpec().Tasks(), expected);
  EXPECT_EQ(FullSpec().FindRole("worker")->replicas, 3);
  EXPECT_EQ(FullSpec().FindRole("ps"), nullptr);
}

TEST(JobSpecTest, ARoleWithoutACommandNeedsTheTrainer) {
  JobSpec spec{.roles = {{.name = "worker", .command = {"true"}}}};
  EXPECT_FALSE(NeedsTrainer(spec));
  spec.roles.push_back({.name = "ps"});
  EXPECT_TRUE(NeedsTrainer(spec));
  EXPECT_FALSE(NeedsTfServer(spec));
  spec.roles[1].server = Server::kTensorFlow;
  EXPECT_FALSE(NeedsTrainer(spec));
  EXPECT_TRUE(NeedsTfServer(spec));
}

TEST(JobSpecTest, AManifestWithoutACommandRunsTheEntryPointOfItsImage) {
  RoleSpec role{.name = "worker", .image = "tf:1", .pod = nlohmann::json::object()};
  EXPECT_TRUE(HasEntryPoint(role));
  EXPECT_FALSE(NeedsTrainer({.roles = {role}}));
  role.image = "registry/muster-trainer:1";
  EXPECT_FALSE(HasEntryPoint(role));
  EXPECT_TRUE(NeedsTrainer({.roles = {role}}));
  role.image = "tf:1";
  role.command = {"python"};
  EXPECT_FALSE(HasEntryPoint(role));
}

TEST(JobSpecTest, TheChiefLeadsElseTheFirstWorker) {
  JobSpec spec = FullSpec();
  EXPECT_EQ(ChiefTask(spec), (cluster::TaskId{"chief", 0}));
  spec.roles[0].replicas = 0;
  EXPECT_EQ(ChiefTask(spec), (cluster::TaskId{"worker", 0}));
  spec.roles[0] = {.name = "master"};
  EXPECT_EQ(ChiefTask(spec), (cluster::TaskId{"master", 0}));
  spec.roles = {{.name = "ps"}, {.name = "actor"}};
  EXPECT_EQ(ChiefTask(spec), std::nullopt);
}

}  // namespace
}  // namespace muster::job
