#include "supervise/task_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "supervise/testing.h"

namespace muster::supervise {
namespace {

// A process outlives the main process of its task in the same process group. The group's id is the
// pid of the main process, which the kernel may have reused by then.
class TaskProcessTest : public LaunchTest {
 protected:
  void SetUp() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    job::TaskLaunch launch;
    launch.argv = {"/bin/sh", "-c", "sleep 1000 & echo $! > member.new; mv member.new member"};
    launch.working_dir = home_;
    launch.env = {{"MUSTER_JOB_ID", "job"}, {"MUSTER_TASK", "worker:0"}, {"MUSTER_ATTEMPT", "0"}};
    auto process = TaskProcess::Start(launch, {{"PATH", "/usr/bin:/bin"}}, *log_, *loop_);
    ASSERT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    int status = 0;
    ASSERT_EQ(::waitpid(process_->pid(), &status, 0), process_->pid());
    ASSERT_EQ(status, 0);
    const auto member = base::ReadFile(absl::StrCat(home_, "/member"));
    ASSERT_TRUE(member.ok() && absl::SimpleAtoi(*member, &member_));
    ASSERT_EQ(::getpgid(member_), process_->pid());
    process_->OnExit(process::ExitStatus::Exited(0), absl::Now());
  }
  void TearDown() override {
    ::kill(member_, SIGKILL);
    ::waitpid(member_, nullptr, 0);
  }
  // Returns true if no signal was sent to the process. An undelivered signal is pending.
  bool IsUntouched() const {
    const std::string status =
        base::ReadFile(absl::StrCat("/proc/", member_, "/status")).value_or("");
    return absl::StrContains(status, "State:\t") && !absl::StrContains(status, "State:\tZ") &&
           absl::StrContains(status, "SigPnd:\t0000000000000000") &&
           absl::StrContains(status, "ShdPnd:\t0000000000000000");
  }

  std::unique_ptr<process::EventLoop> loop_ = *process::EventLoop::Create();
  std::unique_ptr<LogWriter> log_ = *LogWriter::Open(home_, {"worker", 0}, {});
  std::unique_ptr<TaskProcess> process_;
  pid_t member_ = 0;
};

TEST_F(TaskProcessTest, TerminateSendsNothingOnceTheProcessIsReaped) {
  process_->Terminate();
  EXPECT_TRUE(IsUntouched());
}

TEST_F(TaskProcessTest, KillTreeSendsNothingOnceTheProcessIsReaped) {
  process_->KillTree(process::ProcessSnapshot());
  EXPECT_TRUE(IsUntouched());
}

}  // namespace
}  // namespace muster::supervise
