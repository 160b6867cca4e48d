#include "cli/job/report.h"

#include "cli/job/task_table.h"
#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"
#include "job/failure.h"

namespace muster::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

job::JobRecord FinishedJob(job::JobState state) {
  job::JobRecord job;
  job.id = "mnist-x7k2q";
  job.name = "mnist";
  job.platform = "local";
  job.state = state;
  job.created = kStart - absl::Seconds(1);
  job.started = kStart;
  job.finished = kStart + absl::Seconds(65);
  job.model_dir = "/runs/mnist";
  job.tasks = 3;
  return job;
}

job::JobRecord FailedJob() {
  job::JobRecord job = FinishedJob(job::JobState::kFailed);
  job.reason = "worker:1 failed: exit code 1";
  job::FailureReport report{.summary = job.reason, .victims = {"chief:0: stopped by muster"}};
  report.first = job::TaskFailure{.task = {"worker", 1},
                                  .attempt = 2,
                                  .time = kStart + absl::Seconds(60),
                                  .exit_code = 1,
                                  .cause = "exit code 1: ValueError: bad shape",
                                  .advice = "reshape it",
                                  .last_lines = {"Traceback", "ValueError: bad shape"}};
  report.not_restarted = "worker:1: max_restarts (2) exceeded";
  job.failure = job::FailureToJson(report);
  return job;
}

std::string VerdictOf(const job::JobRecord& job) {
  FileOutput file;
  return Verdict(file.terminal(), job);
}

TEST(ReportTest, SuccessReportsDurationAndModelDir) {
  EXPECT_EQ(VerdictOf(FinishedJob(job::JobState::kSucceeded)),
            "mnist-x7k2q Succeeded after 1m05s\n  model dir: /runs/mnist\n");
}

TEST(ReportTest, AStopReportsItsReason) {
  job::JobRecord job = FinishedJob(job::JobState::kStopped);
  job.reason = "stopped by the user";
  EXPECT_EQ(VerdictOf(job), "mnist-x7k2q Stopped after 1m05s: stopped by the user\n");
}

TEST(ReportTest, AFailureReportsTaskTimeCauseAndRemedy) {
  const std::string text = VerdictOf(FailedJob());
  EXPECT_THAT(text, HasSubstr("mnist-x7k2q Failed after 1m05s: worker:1 failed: exit code 1\n"));
  EXPECT_THAT(text, HasSubstr("first failure  worker:1 (attempt 3), "));
  EXPECT_THAT(text, HasSubstr(", 1m00s after the start\n"));
  EXPECT_THAT(text, HasSubstr("  cause          exit code 1: ValueError: bad shape\n"));
  EXPECT_THAT(text, HasSubstr("  what to do     reshape it\n"));
  EXPECT_THAT(text, HasSubstr("    | Traceback\n    | ValueError: bad shape\n"));
  EXPECT_THAT(text, HasSubstr("  not restarted  worker:1: max_restarts (2) exceeded\n"));
  EXPECT_THAT(text, HasSubstr("also ended\n    chief:0: stopped by muster\n"));
  EXPECT_THAT(text, HasSubstr("muster logs mnist-x7k2q worker:1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ReportTest, AJobThatNeverStartedHasAVerdict) {
  job::JobRecord job = FailedJob();
  job.started.reset();
  job.finished.reset();
  EXPECT_THAT(VerdictOf(job),
              AllOf(HasSubstr("mnist-x7k2q Failed: worker:1"), Not(HasSubstr("after the start"))));
  job.failure = "not JSON";
  EXPECT_EQ(VerdictOf(job), "mnist-x7k2q Failed: worker:1 failed: exit code 1\n");
}

TEST(ReportTest, TaskTableHasARowPerTask) {
  job::TaskRecord task;
  task.id = {"worker", 1};
  task.state = job::TaskState::kRunning;
  task.restarts = 2;
  task.host = "here";
  task.address = "127.0.0.1:2222";
  task.pid = 77;
  task.command = "python train.py --a-very-long-option=that-does-not-fit";
  task.started = kStart;

  FileOutput file;
  const std::string table =
      TaskTable(file.terminal(), "mnist-x7k2q", {task}, kStart + absl::Minutes(2));
  EXPECT_THAT(table, ContainsRegex("worker:1  [0-9a-f]{8}  Running  here  77"));
  EXPECT_THAT(table, HasSubstr("python train.py"));
  EXPECT_THAT(table, HasSubstr("…"));
  EXPECT_THAT(table, HasSubstr("2 minutes ago  2"));
  EXPECT_THAT(table, Not(HasSubstr("CPU")));
}

TEST(ReportTest, TaskTableHasWhatRunningTasksUseAndThePeaksOfEndedOnes) {
  job::TaskRecord running{.id = {"worker", 0}, .state = job::TaskState::kRunning};
  job::TaskRecord ended{.id = {"worker", 1}, .state = job::TaskState::kFailed};
  ended.reason = "exit code 1";
  const job::TaskRecord unknown{.id = {"worker", 2}, .state = job::TaskState::kRunning};
  jobs::Sample sample;
  sample.cpu = jobs::Load{.mean = 1.02, .peak = 3.5};
  sample.memory = jobs::Load{.mean = 1288490189, .peak = 2e9};
  FileOutput file;
  const std::string table = TaskTable(
      file.terminal(), "mnist-x7k2q", {running, ended, unknown}, kStart,
      {{running.id, {.current = sample, .total = sample}}, {ended.id, {.total = sample}}});
  EXPECT_THAT(table, ContainsRegex("RESTARTS  CPU +MEM +NOTE"));
  EXPECT_THAT(table, ContainsRegex("worker:0 .* 1\\.02 +1\\.2GiB"));
  EXPECT_THAT(table, ContainsRegex("worker:1 .* peak 3\\.50  peak 1\\.9GiB  exit code 1"));
  EXPECT_THAT(table, ContainsRegex("worker:2 .* 0 *\n"));
}

}  // namespace
}  // namespace muster::cli
