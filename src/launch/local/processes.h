// The tasks of a job that run on this machine, as processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "launch/job_dir.h"
#include "launch/local/stall_watch.h"
#include "launch/local/task_process.h"
#include "launch/log_reader.h"
#include "launch/log_writer.h"
#include "launch/runner.h"
#include "process/event_loop.h"

namespace muster::local {

// Starts and ends processes, moves their output into logs, notices when they listen, stall or end
// and says why. One thread; the process must be a subreaper and have no children of its own.
class Processes {
 public:
  // The references must outlive it.
  Processes(JobDir dir, std::string job_id, EventLoop& loop, RunnerEvents& events);
  ~Processes();

  void SetPolicies(const Policies& policies) { policies_ = policies; }
  // Tells OnStarted, or OnEnded when it cannot be started.
  void Start(const TaskStart& start);
  // A kill is carried out by the next Advance, together with all others.
  void End(const TaskId& task, bool kill);
  void Forget(const TaskId& task) { slots_.erase(task); }
  // How far its log goes by now.
  LogPosition LogEnd(const TaskId& task) const;

  void OnChildren();
  absl::Time next_timer() const;
  void Advance();

 private:
  // A task through all its attempts.
  struct Slot {
    TaskStart start;
    std::unique_ptr<LogWriter> log;
    std::unique_ptr<TaskProcess> process;  // null between attempts
    absl::Time started;
    bool waits_for_port = false;
    int64_t reported_loss = 0;  // of output, when the disk was full
    pid_t capture = 0;          // gdb at work on its stacks
    absl::Time capture_until = absl::InfiniteFuture();
    ProgressFile progress;
    bool stall_reported = false;
  };

  absl::Status Spawn(Slot& slot);
  void KillTrees();
  void CheckOrphans();
  void FinishAttempts();
  AttemptEnd Explain(const Slot& slot);
  void CheckReadiness();
  void CheckStalls();
  void CheckStall(const TaskId& id, Slot& slot, absl::Time now);
  void FinishCapture(const TaskId& id, Slot& slot);
  void CheckLogs();

  const JobDir dir_;
  const std::string job_id_;
  const Clock& clock_ = Clock::Real();
  const std::map<std::string, std::string> environment_;
  EventLoop& loop_;
  RunnerEvents& events_;
  Policies policies_;
  std::map<TaskId, Slot> slots_;
  std::map<pid_t, TaskId> pids_;  // of main processes
  std::set<TaskId> to_kill_;
  absl::Time orphans_at_ = absl::InfiniteFuture();  // when they are looked for again
  absl::Time orphans_until_ = absl::InfinitePast();
  int64_t oom_kills_ = 0;
};

}  // namespace muster::local
