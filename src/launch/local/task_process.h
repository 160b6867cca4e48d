// One attempt of a task as processes of this machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
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

// The main process leads a process group and dies with the supervisor. Whatever it starts belongs
// to the attempt too, other groups and sessions included, and ends with the main process: such a
// process is found as a descendant, or, once its parent is gone, as an orphan of the supervisor (a
// subreaper) that carries MUSTER_JOB_ID and MUSTER_TASK in its environment. Not thread-safe.
class TaskProcess {
 public:
  // `environment` is what the task inherits, `launch.env` comes on top. `log` and `loop` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<TaskProcess>> Start(
      const TaskLaunch& launch, const std::map<std::string, std::string>& environment,
      LogWriter& log, EventLoop& loop);
  ~TaskProcess();

  pid_t pid() const { return pid_; }
  void Terminate();  // asks the main process's group to end
  void KillTree();

  // The main process was reaped. What is left of the attempt is killed.
  void OnExit(ExitStatus status, absl::Time now);
  // Kills those of `orphans`, children of this process, that belong to this attempt once it is
  // over.
  void KillOrphans(const std::set<pid_t>& orphans);
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

  const std::string job_mark_;  // entries in the environment of everything the task starts
  const std::string task_mark_;
  const pid_t pid_;
  UniqueFd output_;
  LogWriter& log_;
  EventLoop& loop_;
  std::optional<ExitStatus> status_;
  absl::Time give_up_at_ = absl::InfiniteFuture();
};

}  // namespace muster::local
