#include "cli/report.h"

#include "cli/terminal_testing.h"
#include "gmock/gmock.h"
#include "job/failure.h"

namespace muster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

JobRecord FinishedJob(JobState state) {
  JobRecord job;
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

JobRecord FailedJob() {
  JobRecord job = FinishedJob(JobState::kFailed);
  job.reason = "worker:1 failed: exit code 1";
  FailureReport report{.summary = job.reason, .victims = {"chief:0: stopped by muster"}};
  report.first = TaskFailure{.task = {"worker", 1},
                             .attempt = 2,
                             .time = kStart + absl::Seconds(60),
                             .exit_code = 1,
                             .cause = "exit code 1: ValueError: bad shape",
                             .advice = "reshape it",
                             .last_lines = {"Traceback", "ValueError: bad shape"}};
  report.not_restarted = "worker:1: max_restarts (2) exceeded";
  job.failure = FailureToJson(report);
  return job;
}

std::string VerdictOf(const JobRecord& job) {
  FileOutput file;
  return Verdict(file.terminal(), job);
}

TEST(ReportTest, SuccessSaysHowLongItTookAndWhereTheModelIs) {
  EXPECT_EQ(VerdictOf(FinishedJob(JobState::kSucceeded)),
            "mnist-x7k2q Succeeded after 1m05s\n  model dir: /runs/mnist\n");
}

TEST(ReportTest, AStopSaysWhoWantedIt) {
  JobRecord job = FinishedJob(JobState::kStopped);
  job.reason = "stopped by the user";
  EXPECT_EQ(VerdictOf(job), "mnist-x7k2q Stopped after 1m05s: stopped by the user\n");
}

TEST(ReportTest, AFailureSaysWhichTaskWhenWhyAndWhatToDo) {
  const std::string text = VerdictOf(FailedJob());
  EXPECT_THAT(text, HasSubstr("mnist-x7k2q Failed after 1m05s: worker:1 failed: exit code 1\n"));
  EXPECT_THAT(text, HasSubstr("first failure  worker:1 (attempt 3), "));
  EXPECT_THAT(text, HasSubstr(", 1m00s after the start\n"));
  EXPECT_THAT(text, HasSubstr("  cause          exit code 1: ValueError: bad shape\n"));
  EXPECT_THAT(text, HasSubstr("  what to do     reshape it\n"));
  EXPECT_THAT(text, HasSubstr("    | Traceback\n    | ValueError: bad shape\n"));
  EXPECT_THAT(text, HasSubstr("  not restarted  worker:1: max_restarts (2) exceeded\n"));
  EXPECT_THAT(text, HasSubstr("fell with it\n    chief:0: stopped by muster\n"));
  EXPECT_THAT(text, HasSubstr("muster logs mnist-x7k2q worker:1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ReportTest, AJobThatNeverStartedHasAVerdictToo) {
  JobRecord job = FailedJob();
  job.started.reset();
  job.finished.reset();
  EXPECT_THAT(VerdictOf(job),
              AllOf(HasSubstr("mnist-x7k2q Failed: worker:1"), Not(HasSubstr("after the start"))));
  job.failure = "not JSON";
  EXPECT_EQ(VerdictOf(job), "mnist-x7k2q Failed: worker:1 failed: exit code 1\n");
}

TEST(ReportTest, AJobAsJson) {
  const nlohmann::json json = JobToJson(FailedJob());
  EXPECT_EQ(json["id"], "mnist-x7k2q");
  EXPECT_EQ(json["state"], "Failed");
  EXPECT_EQ(json["tasks"], 3);
  EXPECT_EQ(json["started"], "2023-11-14T22:13:20+00:00");
  EXPECT_TRUE(json["supervisor_pid"].is_null());
  EXPECT_EQ(json["failure"]["first"]["task"], "worker:1");
  EXPECT_EQ(json["failure"]["first"]["attempt"], 3);  // counted from 1, as in Verdict()
  JobRecord running = FinishedJob(JobState::kRunning);
  running.finished.reset();
  EXPECT_TRUE(JobToJson(running)["finished"].is_null());
  for (const char* absent : {"failure", "reason", "resumed_from"}) {
    EXPECT_TRUE(JobToJson(running).at(absent).is_null()) << absent;
  }
}

TEST(ReportTest, ATaskAsJsonAndAsARow) {
  TaskRecord task;
  task.id = {"worker", 1};
  task.state = TaskState::kRunning;
  task.restarts = 2;
  task.host = "here";
  task.address = "127.0.0.1:2222";
  task.pid = 77;
  task.command = "python train.py --a-very-long-option=that-does-not-fit";
  task.started = kStart;
  const nlohmann::json json = TaskToJson(task);
  EXPECT_EQ(json["task"], "worker:1");
  EXPECT_EQ(json["pid"], 77);
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["command"], task.command);
  EXPECT_EQ(json["attempt"], 1);
  const nlohmann::json pending = TaskToJson({.id = {"worker", 1}});
  for (const char* absent : {"host", "address", "pid", "command", "started", "reason"}) {
    EXPECT_TRUE(pending.at(absent).is_null()) << absent;
  }

  FileOutput file;
  const std::string table = TaskTable(file.terminal(), {task}, kStart + absl::Minutes(2));
  EXPECT_THAT(table, HasSubstr("worker:1  Running  here  77"));
  EXPECT_THAT(table, HasSubstr("python train.py"));
  EXPECT_THAT(table, HasSubstr("…"));
  EXPECT_THAT(table, HasSubstr("2 minutes ago  2"));
}

}  // namespace
}  // namespace muster::cli
