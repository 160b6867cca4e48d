#include "supervise/task_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "process/run.h"
#include "process/spawn.h"

namespace muster::supervise {
namespace {

constexpr int kPipeBytes = 1 << 20;  // fewer wake-ups for verbose tasks; the kernel may grant less
constexpr absl::Duration kTailTimeout = absl::Seconds(2);

void KillWithDescendants(const process::ProcessInfo& root,
                         const process::ProcessSnapshot& processes) {
  process::SignalProcess(root, SIGKILL);
  for (const process::ProcessInfo& process : processes.Descendants(root.pid)) {
    process::SignalProcess(process, SIGKILL);
  }
}

}  // namespace

std::optional<AttemptMark> ReadAttemptMark(pid_t pid) {
  const auto environment = base::ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  if (!environment.ok() || environment->empty()) return std::nullopt;
  AttemptMark mark;
  for (absl::string_view entry : absl::StrSplit(*environment, '\0')) {
    if (absl::ConsumePrefix(&entry, "MUSTER_JOB_ID=")) mark.job = std::string(entry);
    if (absl::ConsumePrefix(&entry, "MUSTER_TASK=")) mark.task = std::string(entry);
    if (absl::ConsumePrefix(&entry, "MUSTER_ATTEMPT=")) mark.attempt = std::string(entry);
  }
  return mark;
}

absl::StatusOr<std::unique_ptr<TaskProcess>> TaskProcess::Start(
    const job::TaskLaunch& launch, const std::map<std::string, std::string>& environment,
    LogWriter& log, process::EventLoop& loop) {
  MUSTER_ASSIGN_OR_RETURN(process::Pipe output, process::MakePipe());
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(output.read.get(), F_SETPIPE_SZ, kPipeBytes);

  std::map<std::string, std::string> env = environment;
  for (const auto& [name, value] : launch.env) env[name] = value;
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, process::Spawn({.argv = launch.argv,
                                                           .env = std::move(env),
                                                           .working_dir = launch.working_dir,
                                                           .output_fd = output.write.get(),
                                                           .parent_death_signal = SIGKILL,
                                                           .new_group = true}));
  std::unique_ptr<TaskProcess> process(
      new TaskProcess(launch, pid, std::move(output.read), log, loop));
  MUSTER_RETURN_IF_ERROR(loop.AddFd(process->output_.get(), EPOLLIN,
                                    [self = process.get()](uint32_t) { self->ReadOutput(); }));
  return process;
}

TaskProcess::TaskProcess(const job::TaskLaunch& launch, pid_t pid, base::UniqueFd output,
                         LogWriter& log, process::EventLoop& loop)
    : mark_{.job = launch.env.at("MUSTER_JOB_ID"),
            .task = launch.env.at("MUSTER_TASK"),
            .attempt = launch.env.at("MUSTER_ATTEMPT")},
      pid_(pid),
      output_(std::move(output)),
      log_(log),
      loop_(loop) {}

TaskProcess::~TaskProcess() { CloseOutput(); }

void TaskProcess::CloseOutput() {
  if (!output_.valid()) return;
  loop_.RemoveFd(output_.get());
  output_.Reset();
}

void TaskProcess::ReadOutput() {
  if (!output_.valid()) return;
  if (log_.Drain(output_.get(), base::Clock::Real().Now()) == LogWriter::Outcome::kEnd)
    CloseOutput();
}

void TaskProcess::Terminate() {
  if (!status_.has_value()) ::kill(-pid_, SIGTERM);
}

void TaskProcess::KillTree(const process::ProcessSnapshot& processes) {
  if (status_.has_value()) return;
  // The main process is an unreaped child, so its pid cannot have been reused.
  ::kill(-pid_, SIGKILL);
  for (const process::ProcessInfo& process : processes.Descendants(pid_))
    process::SignalProcess(process, SIGKILL);
}

void TaskProcess::OnExit(process::ExitStatus status, absl::Time now) {
  status_ = status;
  give_up_at_ = now + kTailTimeout;
  ReadOutput();
}

bool TaskProcess::Finished(absl::Time now) const {
  return status_.has_value() && (!output_.valid() || now >= give_up_at_);
}

bool KillOrphans(const std::string& job, const std::function<bool(pid_t)>& is_main,
                 const std::function<bool(const AttemptMark&)>& is_running) {
  bool look_again = false;
  std::optional<process::ProcessSnapshot> processes;
  for (const pid_t child : process::OwnChildren()) {
    if (is_main(child)) continue;
    const std::optional<AttemptMark> mark = ReadAttemptMark(child);
    if (mark.has_value() && (mark->job != job || is_running(*mark))) continue;
    look_again = true;
    if (!mark.has_value()) continue;
    if (!processes.has_value()) processes.emplace();
    if (auto info = process::ReadProcess(child); info.ok()) KillWithDescendants(*info, *processes);
  }
  return look_again;
}

}  // namespace muster::supervise
