// The interface between a supervisor and the place where its tasks run. Implemented by
// platform/local (this machine) and platform/ssh (hosts).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "process/event_loop.h"
#include "supervise/job_dir.h"
#include "supervise/lifecycle.h"
#include "supervise/usage/sample.h"

namespace muster::supervise {

// Suffix of the reason of a task whose host is unreachable.
inline constexpr char kHostUnreachable[] = " is unreachable; the state of the task is unknown";

// An attempt to be started.
struct TaskStart {
  cluster::TaskId task;
  int attempt = 0;
  job::TaskLaunch launch;
  int port = 0;                 // the task's own
  bool port_is_picked = false;  // by Muster, so another port would do
  bool waits_for_port = false;  // it is ready once it listens on `port`
};

// Receives the progress of tasks. Called on the supervisor's thread, never from within
// Runner::End().
class RunnerEvents {
 public:
  virtual ~RunnerEvents() = default;
  virtual void OnStarted(const cluster::TaskId& task, pid_t pid) = 0;
  virtual void OnReady(const cluster::TaskId& task) = 0;
  // `when` is the time of the end by this machine's clock. The log already contains all output.
  virtual void OnEnded(const cluster::TaskId& task, const AttemptEnd& end, absl::Time when) = 0;
  virtual void OnStalled(const cluster::TaskId& task, const std::string& why) = 0;
  // Reports what the task used since its last sample. Samples may be lost.
  virtual void OnSample(const cluster::TaskId& task, const Sample& sample) = 0;
  // Adds an event to the job's history.
  virtual void OnNote(const std::string& kind, const std::string& subject,
                      const std::string& message) = 0;
};

// Runs the tasks of one job. Uses the supervisor's loop and writes the logs in the job's folder.
// Not thread-safe.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual absl::string_view platform() const = 0;
  // Reserves ports for the tasks of `next` and returns their addresses. A task may keep the address
  // that it has in `current`.
  virtual absl::StatusOr<cluster::ClusterSpec> Assign(const job::Submission& next,
                                                      const cluster::ClusterSpec& current) = 0;
  // Releases the ports that only `left` contains.
  virtual void Release(const cluster::ClusterSpec& left, const cluster::ClusterSpec& kept) = 0;
  // Returns a replacement for `address`, which another process has taken, or nullopt if there is
  // none.
  virtual std::optional<std::string> AnotherAddress(const cluster::TaskId& task,
                                                    absl::string_view address) = 0;
  // Returns true if Muster, not the user, picks the task's port.
  virtual bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) const = 0;
  // Returns the command, environment and directory of an attempt.
  virtual absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                                   const cluster::ClusterSpec& cluster,
                                                   const cluster::TaskId& task, int attempt,
                                                   int restarts) const = 0;
  virtual absl::StatusOr<UpdatePlan> PlanUpdate(const job::Submission& current,
                                                const cluster::ClusterSpec& cluster,
                                                const job::Submission& next) const = 0;
  virtual std::string HostOf(const cluster::TaskId& task) const = 0;
  // Returns OK if the task's host is reachable, or else the reason.
  virtual absl::Status Reachability(const cluster::TaskId& task) const = 0;

  virtual void SetPolicies(const job::Policies& policies) = 0;
  virtual void Start(const TaskStart& start) = 0;
  // Requests the task to end, or (kill) kills its whole process tree. OnEnded follows.
  virtual void End(const cluster::TaskId& task, bool kill) = 0;
  // Drops the state of a task that has ended and left the job.
  virtual void Forget(const cluster::TaskId& task) = 0;

  virtual void OnChildren() = 0;  // call it on SIGCHLD
  virtual absl::Time next_timer() const = 0;
  virtual void Advance() = 0;
  // Called after the job's end. Returns true once no work is left; otherwise the caller calls
  // Advance() at next_timer() and tries again.
  virtual bool Finish() = 0;
};

// Creates the runner of a job. `loop` and `events` must outlive it.
using RunnerFactory = std::function<absl::StatusOr<std::unique_ptr<Runner>>(
    const JobDir& dir, const job::Submission& submission, process::EventLoop& loop,
    RunnerEvents& events)>;

}  // namespace muster::supervise
