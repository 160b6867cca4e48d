// Runs the tasks of a job as processes of this machine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "process/event_loop.h"
#include "supervise/job_dir.h"
#include "supervise/log/log_reader.h"
#include "supervise/log/log_writer.h"
#include "supervise/runner.h"
#include "supervise/stall_watch.h"
#include "supervise/task_process.h"
#include "supervise/usage/sampler.h"

namespace muster::supervise {

// Spawns and ends task processes, moves their output to logs, and reports readiness, stalls,
// exits with their cause and samples to a RunnerEvents. Not thread-safe. REQUIRES: this process is
// a subreaper and has no other children.
class Processes {
 public:
  // `loop` and `events` must outlive this object.
  Processes(JobDir dir, std::string job_id, process::EventLoop& loop, RunnerEvents& events);
  ~Processes();

  void SetPolicies(const job::Policies& policies) { policies_ = policies; }
  // Calls OnStarted, or OnEnded if the process cannot be spawned.
  void Start(const TaskStart& start);
  // Sends SIGTERM, or (kill) lets the next Advance() kill the process tree, together with all
  // others.
  void End(const cluster::TaskId& task, bool kill);
  void Forget(const cluster::TaskId& task) { slots_.erase(task); }
  // Returns the current end of the task's log.
  LogPosition LogEnd(const cluster::TaskId& task) const;

  // Reaps the children that have exited. Call it on SIGCHLD.
  void OnChildren();
  absl::Time next_timer() const;
  void Advance();

 private:
  // A task across its attempts.
  struct Slot {
    TaskStart start;
    std::unique_ptr<LogWriter> log;
    std::unique_ptr<TaskProcess> process;  // null between attempts
    absl::Time started;
    bool waits_for_port = false;
    int64_t reported_loss = 0;  // bytes of lost output already reported
    pid_t capture = 0;          // pid of the gdb that captures its stacks; 0 if none
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
  void CheckStall(const cluster::TaskId& id, Slot& slot, absl::Time now);
  void FinishCapture(const cluster::TaskId& id, Slot& slot);
  void CheckLogs();
  void TakeSamples();

  const JobDir dir_;
  const std::string job_id_;
  const base::Clock& clock_ = base::Clock::Real();
  const std::map<std::string, std::string> environment_;
  process::EventLoop& loop_;
  RunnerEvents& events_;
  job::Policies policies_;
  std::map<cluster::TaskId, Slot> slots_;
  std::map<pid_t, cluster::TaskId> pids_;  // main processes
  std::set<cluster::TaskId> to_kill_;
  absl::Time orphans_at_ = absl::InfiniteFuture();   // next scan for orphans
  absl::Time orphans_until_ = absl::InfinitePast();  // last scan
  int64_t oom_kills_ = 0;
  Sampler sampler_;
};

}  // namespace muster::supervise
