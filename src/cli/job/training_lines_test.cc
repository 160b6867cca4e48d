#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "checkpoint/testing.h"
#include "cli/job/report.h"
#include "gmock/gmock.h"
#include "job/testing.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

constexpr char kTrains[] =
    "name: mnist\ntrain: {model: cnn, steps: 10, data: {format: synthetic}}\n";

class TrainingLinesTest : public testing::Test {
 protected:
  TrainingLinesTest() {
    job_.id = "mnist-x7k2q";
    job_.name = "mnist";
    job_.directory = supervise::JobDir::Of(temp_.path(), job_.id).path();
    job_.model_dir = base::JoinPath(temp_.path(), "model");
    Submit(kTrains);
  }

  void Submit(const std::string& job_file) {
    const supervise::JobDir dir(job_.directory);
    std::filesystem::remove_all(job_.directory);
    EXPECT_TRUE(dir.Create().ok());
    job::Submission submission;
    submission.id = job_.id;
    submission.spec = job::MustParse(job_file);
    submission.created = absl::FromUnixSeconds(1'700'000'000);
    EXPECT_TRUE(dir.SaveSubmission(submission).ok());
  }

  void Evaluated(const std::string& json) const {
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(job_.model_dir, "eval")).ok());
    EXPECT_TRUE(base::ReplaceFile(base::JoinPath(job_.model_dir, "eval/latest.json"), json).ok());
  }

  std::string Lines() const { return TrainingLines(job_, jobs::ReadTrainingResult(job_)); }

  std::string CheckpointLine(int64_t step) const {
    return absl::StrCat("  checkpoints: ", job_.model_dir, "/checkpoints (latest step ", step,
                        ")\n");
  }

  const base::TempDir temp_;
  job::JobRecord job_;
};

TEST_F(TrainingLinesTest, ListsCheckpointsAndEvaluation) {
  EXPECT_EQ(Lines(), "");
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 2000).ok());
  EXPECT_EQ(Lines(), CheckpointLine(2000));
  Evaluated(R"({"step":2000,"name":"MNIST","metrics":[["accuracy",0.99124],["loss",0.03]]})");
  EXPECT_EQ(Lines(), absl::StrCat(CheckpointLine(2000), "  MNIST accuracy: 0.9912 (step 2000)\n"));
}

TEST_F(TrainingLinesTest, ResultsOfAnotherRunNameThatRun) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500, "mnist-other").ok());
  Evaluated(R"({"step":500,"name":"MNIST","job":"mnist-other","metrics":[["accuracy",0.9]]})");
  const std::string others = absl::StrCat("  checkpoints: ", job_.model_dir,
                                          "/checkpoints (latest step 500, of mnist-other)\n"
                                          "  MNIST accuracy: 0.9000 (step 500, of mnist-other)\n");
  job_.state = job::JobState::kStopped;
  EXPECT_EQ(Lines(), others);
  job_.state = job::JobState::kSucceeded;
  EXPECT_EQ(Lines(), "  nothing was trained: step 500 had already been reached\n" + others);
  job_.state = job::JobState::kFailed;
  EXPECT_EQ(Lines(), "");
  // The job's own checkpoint, not yet evaluated.
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 600, job_.id).ok());
  EXPECT_EQ(Lines(), CheckpointLine(600));
}

TEST_F(TrainingLinesTest, AFailedRunDoesNotShowResultsOfUnknownOrigin) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  Evaluated(R"({"step":500,"name":"MNIST","metrics":[["accuracy",0.9]]})");
  job_.state = job::JobState::kFailed;
  EXPECT_EQ(Lines(), "");
}

TEST_F(TrainingLinesTest, ADamagedCheckpointIsNotTheLatest) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 2000).ok());
  checkpoint::Spill(checkpoint::CheckpointPath(job_.model_dir, 2000) + "/manifest.json", "{");
  EXPECT_EQ(Lines(), CheckpointLine(500));
}

TEST_F(TrainingLinesTest, AnEvaluationThatCannotBeReadIsNotShown) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"metrics": {}})", R"({"metrics": []})", R"({"metrics": [1]})",
        R"({"metrics": [["accuracy"]]})", R"({"metrics": [["accuracy", null]]})",
        R"({"metrics": [[7, 7]]})", R"({"metrics": [["accuracy", 1e999]]})", "\xff"}) {
    Evaluated(text);
    EXPECT_EQ(Lines(), "") << text;
  }
  Evaluated(std::string(1 << 20, ' '));
  EXPECT_EQ(Lines(), "");
}

TEST_F(TrainingLinesTest, EvaluationsCannotSendControlCharacters) {
  Evaluated(R"({"step":-1,"name":7,"metrics":[["a\u001b[31m\u0007\nb",1e300]]})");
  EXPECT_EQ(Lines(), "  mnist a^[[31m^G^Jb: 1e+300\n");
  Evaluated(absl::StrCat(R"({"name":")", std::string(5000, 'x'), R"(","metrics":[["a",1]]})"));
  EXPECT_LT(Lines().size(), 100u);
}

TEST_F(TrainingLinesTest, OnlyJobsOfTheBuiltInTrainerHaveAResult) {
  ASSERT_TRUE(checkpoint::SaveStep(job_.model_dir, 500).ok());
  EXPECT_TRUE(jobs::TrainSubmission(job_).ok());
  Submit("name: own\nroles: {worker: {command: x}}\n");
  EXPECT_EQ(Lines(), "");
  const absl::Status refused = jobs::TrainSubmission(job_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mnist-x7k2q has no `train` section"));
  std::filesystem::remove_all(job_.directory);
  EXPECT_EQ(Lines(), "");
  EXPECT_FALSE(jobs::TrainSubmission(job_).ok());
}

}  // namespace
}  // namespace muster::cli
