#include "supervise/processes.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "gtest/gtest.h"
#include "process/tree.h"
#include "supervise/testing.h"

namespace muster::supervise {
namespace {

// Returns the number of read() calls of this process.
int64_t Reads() {
  const std::string counters = base::ReadFile("/proc/self/io").value_or("");
  for (absl::string_view line : absl::StrSplit(counters, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, "syscr: ") && absl::SimpleAtoi(line, &count)) return count;
  }
  return -1;
}

int64_t CountProcesses() {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    count += std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return count;
}

class ProcessesTest : public LaunchTest, public RunnerEvents {
 protected:
  ProcessesTest() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    EXPECT_TRUE(dir_.Create().ok());
  }

  void Start(const cluster::TaskId& task, const std::string& command) {
    TaskStart start{.task = task};
    start.launch.argv = {"/bin/sh", "-c", command};
    start.launch.working_dir = home_;
    start.launch.env = {
        {"MUSTER_JOB_ID", job_id_}, {"MUSTER_TASK", task.ToString()}, {"MUSTER_ATTEMPT", "0"}};
    processes_.Start(start);
  }
  bool WaitForEnds(size_t count) {
    return base::Eventually([&] {
      EXPECT_TRUE(loop_->Wait(absl::Milliseconds(5)).ok());
      processes_.OnChildren();
      processes_.Advance();
      return ends_.size() == count;
    });
  }

  void OnStarted(const cluster::TaskId&, pid_t) override { ++started_; }
  void OnReady(const cluster::TaskId&) override {}
  void OnEnded(const cluster::TaskId& task, const AttemptEnd& end, absl::Time) override {
    ends_[task] = end;
  }
  void OnStalled(const cluster::TaskId&, const std::string&) override {}
  void OnSample(const cluster::TaskId& task, const Sample& sample) override {
    samples_[task].push_back(sample);
  }
  void OnNote(const std::string&, const std::string&, const std::string&) override {}

  const std::string job_id_ = absl::StrCat("processes-test-", ::getpid());
  const JobDir dir_ = JobDir::Of(home_, job_id_);
  std::unique_ptr<process::EventLoop> loop_ = *process::EventLoop::Create();
  Processes processes_{dir_, job_id_, *loop_, *this};
  int started_ = 0;
  std::map<cluster::TaskId, AttemptEnd> ends_;
  std::map<cluster::TaskId, std::vector<Sample>> samples_;
};

TEST_F(ProcessesTest, KillingManyTasksTakesOneSnapshot) {
  constexpr int kTasks = 40;
  for (int i = 0; i < kTasks; ++i) Start({"worker", i}, "exec sleep 1000");
  ASSERT_EQ(started_, kTasks);
  ASSERT_GE(Reads(), 0);
  const int64_t all = CountProcesses();
  const int64_t before = Reads();
  for (int i = 0; i < kTasks; ++i) processes_.End({"worker", i}, /*kill=*/true);
  EXPECT_EQ(processes_.next_timer(), absl::InfinitePast());
  processes_.Advance();
  // Two reads per process, twice as many for processes started meanwhile, and some per task.
  EXPECT_LT(Reads() - before, 4 * all + 10 * kTasks);
  EXPECT_TRUE(WaitForEnds(kTasks));
  EXPECT_EQ((ends_[{"worker", 0}].exit_code), 137);
}

TEST_F(ProcessesTest, ReportsSamplesOfRunningTasksAndOfTheirEnd) {
  const cluster::TaskId running{"worker", 0}, brief{"worker", 1};
  Start(running, "while :; do :; done");
  Start(brief, "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done");
  EXPECT_LE(processes_.next_timer(), absl::Now() + absl::Seconds(2));
  ASSERT_TRUE(WaitForEnds(1));
  ASSERT_TRUE(base::Eventually([&] {
    EXPECT_TRUE(loop_->Wait(absl::Milliseconds(5)).ok());
    processes_.Advance();
    return samples_[running].size() >= 2;
  }));
  EXPECT_GT(samples_[running][1].time, samples_[running][0].time);
  EXPECT_GT(samples_[running][0].cpu->mean, 0.1);
  EXPECT_GT(samples_[running][0].memory->mean, 100'000);
  EXPECT_GE(samples_[brief].size(), 1);
  processes_.End(running, /*kill=*/true);
  EXPECT_TRUE(WaitForEnds(2));
  const size_t count = samples_[running].size();
  processes_.Advance();
  EXPECT_EQ(samples_[running].size(), count);
}

TEST_F(ProcessesTest, AKillEndsProcessesThatLeftTheGroupAndTheSession) {
  Start({"worker", 0}, "setsid sleep 1000 & setsid setsid sleep 1000 & touch up; sleep 1000");
  ASSERT_TRUE(base::Eventually([&] { return ::access((home_ + "/up").c_str(), F_OK) == 0; }));
  processes_.End({"worker", 0}, /*kill=*/true);
  EXPECT_TRUE(WaitForEnds(1));
  EXPECT_TRUE(base::Eventually([&] {
    processes_.OnChildren();
    processes_.Advance();
    return process::ProcessesWithEnvironment(absl::StrCat("MUSTER_JOB_ID=", job_id_)).empty();
  }));
}

// File types that a task may create in place of its error file.
class ErrorFileTest : public ProcessesTest, public testing::WithParamInterface<const char*> {};

TEST_P(ErrorFileTest, DoesNotBlockTheSupervisor) {
  const cluster::TaskId task{"worker", 0};
  const std::string file = base::JoinPath(dir_.run_dir(task), "error.json");
  Start(task, absl::StrCat("f='", file, "'; ", GetParam(), "; exit 3"));
  ASSERT_TRUE(WaitForEnds(1));
  EXPECT_EQ(ends_[task].reason, "exit code 3");
}

INSTANTIATE_TEST_SUITE_P(Kinds, ErrorFileTest,
                         testing::Values("mkfifo \"$f\"", "mkdir \"$f\"", "ln -s /dev/zero \"$f\"",
                                         "mkfifo p; ln -s \"$PWD/p\" \"$f\"",
                                         "truncate -s 2M \"$f\""));

}  // namespace
}  // namespace muster::supervise
