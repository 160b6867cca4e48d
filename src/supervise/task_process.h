// One attempt of a task as a process tree on this machine.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "job/task_launch.h"
#include "process/event_loop.h"
#include "process/exit_status.h"
#include "process/tree.h"
#include "supervise/log/log_writer.h"

namespace muster::supervise {

// Identifies the attempt of a process by the environment it was started with.
struct AttemptMark {
  std::string job;      // MUSTER_JOB_ID
  std::string task;     // MUSTER_TASK
  std::string attempt;  // MUSTER_ATTEMPT
  bool operator==(const AttemptMark&) const = default;
};

// Returns the mark of a process; its members are empty if it has none. Returns nullopt if the
// environment is not readable: the process has exited, or is in the middle of exec.
std::optional<AttemptMark> ReadAttemptMark(pid_t pid);

// The main process leads a process group and is killed when the supervisor dies. Every process that
// it starts belongs to the attempt, including those in other groups and sessions, and is killed
// when the main process exits. Such a process is found as a descendant or, once its parent has
// exited, as an orphan of the supervisor (a subreaper) that carries the mark; see KillOrphans. Not
// thread-safe.
class TaskProcess {
 public:
  // The task inherits `environment`, overridden by `launch.env`. `log` and `loop` must outlive the
  // process. REQUIRES: `launch.env` has the variables of AttemptMark.
  static absl::StatusOr<std::unique_ptr<TaskProcess>> Start(
      const job::TaskLaunch& launch, const std::map<std::string, std::string>& environment,
      LogWriter& log, process::EventLoop& loop);
  ~TaskProcess();

  pid_t pid() const { return pid_; }
  const AttemptMark& mark() const { return mark_; }
  void Terminate();  // sends SIGTERM to the process group
  // Kills the main process, its group and its descendants in `processes`. A process forked after
  // that snapshot is found as an orphan.
  void KillTree(const process::ProcessSnapshot& processes);

  // Records the exit of the main process. REQUIRES: it was reaped, and its group was killed before
  // that, while its pid could not be reused.
  void OnExit(process::ExitStatus status, absl::Time now);
  // Returns true once the main process has exited and its output is complete, or give_up_at() has
  // passed. Killed descendants may hold the pipe open for a moment.
  bool Finished(absl::Time now) const;
  absl::Time give_up_at() const { return give_up_at_; }
  const std::optional<process::ExitStatus>& exit_status() const { return status_; }

 private:
  TaskProcess(const job::TaskLaunch& launch, pid_t pid, base::UniqueFd output, LogWriter& log,
              process::EventLoop& loop);
  void ReadOutput();
  void CloseOutput();

  const AttemptMark mark_;
  const pid_t pid_;
  base::UniqueFd output_;
  LogWriter& log_;
  process::EventLoop& loop_;
  std::optional<process::ExitStatus> status_;
  absl::Time give_up_at_ = absl::InfiniteFuture();
};

// Kills the children of this process that belong to a finished attempt of `job`, and their
// descendants. Skips main processes (`is_main`) and attempts that still run (`is_running`). Returns
// true if the caller must scan again: a child was just killed, or the mark of a child cannot be
// read yet.
bool KillOrphans(const std::string& job, const std::function<bool(pid_t)>& is_main,
                 const std::function<bool(const AttemptMark&)>& is_running);

}  // namespace muster::supervise
