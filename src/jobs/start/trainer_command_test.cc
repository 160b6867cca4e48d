#include "jobs/start/trainer_command.h"

#include <filesystem>

#include "base/files/files.h"
#include "gmock/gmock.h"
#include "jobs/start/run.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

constexpr char kTrainJob[] = R"(
name: mnist
model_dir: runs/mnist
roles: {chief: {}}
train: {model: cnn, data: {format: mnist, path: data}, steps: 10, evaluate: {split: train}}
)";

class TrainerCommandTest : public testing::Test {
 protected:
  TrainerCommandTest() {
    EXPECT_TRUE(base::ReplaceFile(trainer_, "#!/bin/sh\n", 0755).ok());
    std::filesystem::permissions(trainer_, std::filesystem::perms::owner_all);
  }

  job::JobRecord Start(const std::string& text) {
    const auto plan = PlanRun(*service_, {.submission = service_.Load(text)});
    EXPECT_TRUE(plan.ok()) << plan.status();
    const auto job = StartPlanned(*service_, *plan);
    EXPECT_TRUE(job.ok() && job->has_value()) << job.status();
    return **job;
  }

  const base::TempDir bin_;
  const std::string trainer_ = bin_.path() + "/muster-trainer";
  TestService service_{bin_.path() + "/muster"};
};

TEST_F(TrainerCommandTest, EvaluatesInTheDirectoryOfTheJob) {
  const job::JobRecord job = Start(kTrainJob);
  const auto command = TrainerCommand(*service_, job, {.json = true}, {});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre(trainer_, "evaluate", "--split", "train", "--checkpoint",
                                         "latest", "--json"));
  EXPECT_EQ(command->working_dir, service_.local().submissions[0].working_dir);
  EXPECT_THAT(command->env, Contains(Pair("MUSTER_MODEL_DIR", job.model_dir)));
  EXPECT_THAT(command->env, Contains(Pair("MUSTER_JOB_ID", job.id)));
  EXPECT_THAT(command->env, Contains(Key("MUSTER_TRAIN_CONFIG")));
}

TEST_F(TrainerCommandTest, PredictsIntoAFile) {
  const auto command = TrainerCommand(*service_, Start(kTrainJob),
                                      {.action = TrainerRequest::Action::kPredict,
                                       .split = "test",
                                       .checkpoint = "best",
                                       .to = "/tmp/x",
                                       .force = true},
                                      {});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre(trainer_, "predict", "--split", "test", "--checkpoint",
                                         "best", "--to", "/tmp/x", "--force"));
}

TEST_F(TrainerCommandTest, RemovesTheVariablesOfOtherTasks) {
  const auto command = TrainerCommand(*service_, Start(kTrainJob), {},
                                      {{"PATH", "/bin"},
                                       {"TF_CONFIG", "{}"},
                                       {"MUSTER_TASK", "ps:0"},
                                       {"MUSTER_HOME", "/home"},
                                       {"MUSTER_HDFS_USER", "ann"}});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->env, Not(Contains(Key("TF_CONFIG"))));
  EXPECT_THAT(command->env, Not(Contains(Key("MUSTER_TASK"))));
  EXPECT_THAT(command->env, Contains(Pair("PATH", "/bin")));
  EXPECT_THAT(command->env, Contains(Pair("MUSTER_HOME", "/home")));
  EXPECT_THAT(command->env, Contains(Pair("MUSTER_HDFS_USER", "ann")));
}

TEST_F(TrainerCommandTest, RefusesJobsThatItCannotEvaluate) {
  const job::JobRecord trained = Start(kTrainJob);
  const absl::Status bad =
      TrainerCommand(*service_, trained, {.checkpoint = "newest"}, {}).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument) << bad;
  const absl::Status other = TrainerCommand(*service_, Start(kJob), {}, {}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("no `train` section"));
}

}  // namespace
}  // namespace muster::jobs
