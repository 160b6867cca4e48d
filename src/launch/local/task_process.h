// One attempt of a task as processes of this machine.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "job/task_launch.h"
#include "launch/log_writer.h"
#include "process/event_loop.h"
#include "process/exit_status.h"
#include "process/tree.h"

namespace muster::local {

// Which attempt a process belongs to, by the environment that it was started with.
struct AttemptMark {
  std::string job;      // MUSTER_JOB_ID
  std::string task;     // MUSTER_TASK
  std::string attempt;  // MUSTER_ATTEMPT
  bool operator==(const AttemptMark&) const = default;
};

// The main process leads a process group and dies with the supervisor. Whatever it starts belongs
// to the attempt too, other groups and sessions included, and ends with the main process: such a
// process is found as a descendant, or, once its parent is gone, as an orphan of the supervisor (a
// subreaper) that carries the mark: see KillOrphans. Not thread-safe.
class TaskProcess {
 public:
  // `environment` is what the task inherits, `launch.env` comes on top. `log` and `loop` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<TaskProcess>> Start(
      const TaskLaunch& launch, const std::map<std::string, std::string>& environment,
      LogWriter& log, EventLoop& loop);
  ~TaskProcess();

  pid_t pid() const { return pid_; }
  const AttemptMark& mark() const { return mark_; }
  void Terminate();  // asks the main process's group to end
  // Kills the main process, its group and its descendants in `processes`. What was forked since
  // then is found as an orphan.
  void KillTree(const ProcessSnapshot& processes);

  // The main process was reaped; its group was killed before that, while its pid was its own.
  void OnExit(ExitStatus status, absl::Time now);
  // Whether the main process has ended and its output is complete. Until then output may come from
  // what was just killed; after a short while it is not waited for any more.
  bool Finished(absl::Time now) const;
  absl::Time give_up_at() const { return give_up_at_; }
  const std::optional<ExitStatus>& exit_status() const { return status_; }

 private:
  TaskProcess(const TaskLaunch& launch, pid_t pid, UniqueFd output, LogWriter& log,
              EventLoop& loop);
  void ReadOutput();
  void CloseOutput();

  const AttemptMark mark_;
  const pid_t pid_;
  UniqueFd output_;
  LogWriter& log_;
  EventLoop& loop_;
  std::optional<ExitStatus> status_;
  absl::Time give_up_at_ = absl::InfiniteFuture();
};

// Kills the children of this process, and what is below them, that belong to an attempt of `job`
// which is over. Returns whether a child remains of which that cannot be told yet, or that was
// killed just now: look again then.
bool KillOrphans(const std::string& job, const std::function<bool(pid_t)>& is_main,
                 const std::function<bool(const AttemptMark&)>& goes_on);

}  // namespace muster::local
