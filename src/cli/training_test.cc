#include "cli/training.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/testing.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "job/testing.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

constexpr char kTrains[] =
    "name: mnist\ntrain: {model: cnn, steps: 10, data: {format: synthetic}}\n";

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    job_.id = "mnist-x7k2q";
    job_.name = "mnist";
    job_.directory = JobDir::Of(temp_.path(), job_.id).path();
    job_.model_dir = JoinPath(temp_.path(), "model");
    Submit(kTrains);
  }

  void Submit(const std::string& job_file) {
    const JobDir dir(job_.directory);
    std::filesystem::remove_all(job_.directory);
    EXPECT_TRUE(dir.Create().ok());
    Submission submission;
    submission.id = job_.id;
    submission.spec = MustParse(job_file);
    submission.created = absl::FromUnixSeconds(1'700'000'000);
    EXPECT_TRUE(dir.SaveSubmission(submission).ok());
  }

  void Evaluated(const std::string& json) const {
    EXPECT_TRUE(MakeDirectories(JoinPath(job_.model_dir, "eval")).ok());
    EXPECT_TRUE(ReplaceFile(JoinPath(job_.model_dir, "eval/latest.json"), json).ok());
  }

  std::string CheckpointLine(int64_t step) const {
    return absl::StrCat("  checkpoints: ", job_.model_dir, "/checkpoints (latest step ", step,
                        ")\n");
  }

  const TempDir temp_;
  JobRecord job_;
};

TEST_F(TrainingTest, WhatAJobHasLeft) {
  EXPECT_EQ(TrainingResult(job_), "");
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 2000).ok());
  EXPECT_EQ(TrainingResult(job_), CheckpointLine(2000));
  Evaluated(R"({"step":2000,"name":"MNIST","metrics":[["accuracy",0.99124],["loss",0.03]]})");
  EXPECT_EQ(TrainingResult(job_),
            absl::StrCat(CheckpointLine(2000), "  MNIST accuracy: 0.9912 (step 2000)\n"));
}

TEST_F(TrainingTest, WhatAnotherRunHasLeftIsSaidToBeItsOwn) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500, "mnist-other").ok());
  Evaluated(R"({"step":500,"name":"MNIST","job":"mnist-other","metrics":[["accuracy",0.9]]})");
  const std::string others = absl::StrCat("  checkpoints: ", job_.model_dir,
                                          "/checkpoints (latest step 500, of mnist-other)\n"
                                          "  MNIST accuracy: 0.9000 (step 500, of mnist-other)\n");
  job_.state = JobState::kStopped;
  EXPECT_EQ(TrainingResult(job_), others);
  job_.state = JobState::kSucceeded;
  EXPECT_EQ(TrainingResult(job_), "  nothing was trained: step 500 was reached before\n" + others);
  job_.state = JobState::kFailed;
  EXPECT_EQ(TrainingResult(job_), "");
  // The job's own checkpoint, not yet evaluated.
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 600, job_.id).ok());
  EXPECT_EQ(TrainingResult(job_), CheckpointLine(600));
}

TEST_F(TrainingTest, AFailedRunDoesNotShowWhatNobodyIsKnownToHaveMade) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  Evaluated(R"({"step":500,"name":"MNIST","metrics":[["accuracy",0.9]]})");
  job_.state = JobState::kFailed;
  EXPECT_EQ(TrainingResult(job_), "");
}

TEST_F(TrainingTest, ADamagedCheckpointIsNotTheLatest) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 2000).ok());
  checkpoint::Spill(checkpoint::CheckpointPath(job_.model_dir, 2000) + "/manifest.json", "{");
  EXPECT_EQ(TrainingResult(job_), CheckpointLine(500));
}

TEST_F(TrainingTest, AnEvaluationThatCannotBeReadIsNotShown) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"metrics": {}})", R"({"metrics": []})", R"({"metrics": [1]})",
        R"({"metrics": [["accuracy"]]})", R"({"metrics": [["accuracy", null]]})",
        R"({"metrics": [[7, 7]]})", R"({"metrics": [["accuracy", 1e999]]})", "\xff"}) {
    Evaluated(text);
    EXPECT_EQ(TrainingResult(job_), "") << text;
  }
  Evaluated(std::string(1 << 20, ' '));
  EXPECT_EQ(TrainingResult(job_), "");
}

TEST_F(TrainingTest, NothingOfAnEvaluationReachesTheTerminalAsACommand) {
  Evaluated(R"({"step":-1,"name":7,"metrics":[["a\u001b[31m\u0007\nb",1e300]]})");
  EXPECT_EQ(TrainingResult(job_), "  mnist a^[[31m^G^Jb: 1e+300\n");
  Evaluated(absl::StrCat(R"({"name":")", std::string(5000, 'x'), R"(","metrics":[["a",1]]})"));
  EXPECT_LT(TrainingResult(job_).size(), 100u);
}

TEST_F(TrainingTest, OnlyJobsOfTheBuiltInTrainerHaveAResult) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  EXPECT_TRUE(TrainSubmission(job_).ok());
  Submit("name: own\nroles: {worker: {command: x}}\n");
  EXPECT_EQ(TrainingResult(job_), "");
  const absl::Status refused = TrainSubmission(job_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mnist-x7k2q has no `train` section"));
  std::filesystem::remove_all(job_.directory);
  EXPECT_EQ(TrainingResult(job_), "");
  EXPECT_FALSE(TrainSubmission(job_).ok());
}

TEST_F(TrainingTest, AStepToGoOnFromMustBeThere) {
  const auto message = [this](int64_t step) {
    const absl::Status status = CheckCheckpoint(job_.model_dir, step);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    return std::string(status.message());
  };
  EXPECT_EQ(message(7), job_.model_dir + " has no checkpoint of step 7; there are none");
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  EXPECT_EQ(message(7), job_.model_dir + " has no checkpoint of step 7; there is only 500");
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 1000).ok());
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 1500).ok());
  EXPECT_TRUE(CheckCheckpoint(job_.model_dir, 1000).ok());
  checkpoint::Spill(checkpoint::CheckpointPath(job_.model_dir, 1000) + "/manifest.json", "{");
  EXPECT_THAT(message(1000), HasSubstr("has no checkpoint of step 1000 that can be used ("));
  EXPECT_THAT(message(1000), HasSubstr("; there are 500, 1500"));
  EXPECT_THAT(std::string(CheckCheckpoint("memory://model", 7).message()),
              HasSubstr("memory://model has no checkpoint of step 7; there are none"));
}

}  // namespace
}  // namespace muster::cli
