// Where the tasks of a job run, as its supervisor sees it: local/ (this machine), ssh/ (hosts).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec.h"
#include "job/task_launch.h"
#include "launch/lifecycle.h"
#include "launch/submission.h"

namespace muster {

// How the reason of a task ends whose host cannot be reached.
inline constexpr char kHostIsSilent[] = " does not answer: whether it runs is not known";

// One attempt of a task that is to be started.
struct TaskStart {
  TaskId task;
  int attempt = 0;
  TaskLaunch launch;
  int port = 0;                 // its own
  bool port_is_picked = false;  // by Muster, so that another will do as well
  bool waits_for_port = false;  // it is ready when it listens there
};

// What becomes of tasks. Called in the supervisor's thread, never from within Runner::End().
class RunnerEvents {
 public:
  virtual ~RunnerEvents() = default;
  virtual void OnStarted(const TaskId& task, pid_t pid) = 0;
  virtual void OnReady(const TaskId& task) = 0;
  // `when` it happened, by this machine's clock. All of its output is in the log.
  virtual void OnEnded(const TaskId& task, const AttemptEnd& end, absl::Time when) = 0;
  virtual void OnStalled(const TaskId& task, const std::string& why) = 0;
  // Worth an event of the job's.
  virtual void OnNote(const std::string& kind, const std::string& subject,
                      const std::string& message) = 0;
};

// Not thread-safe. It uses the supervisor's loop and writes the logs of the job's folder.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual absl::string_view platform() const = 0;
  // The addresses of `next`'s tasks, where those that have one in `current` may keep it. Their
  // ports are reserved.
  virtual absl::StatusOr<ClusterSpec> Assign(const Submission& next,
                                             const ClusterSpec& current) = 0;
  // Gives back the ports that only `left` has.
  virtual void Release(const ClusterSpec& left, const ClusterSpec& kept) = 0;
  // Instead of `address`, which somebody else has taken; nullopt when there is none.
  virtual std::optional<std::string> AnotherAddress(const TaskId& task,
                                                    absl::string_view address) = 0;
  virtual bool IsPicked(const JobSpec& spec, const TaskId& task) const = 0;
  virtual absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission,
                                              const ClusterSpec& cluster, const TaskId& task,
                                              int attempt, int restarts) const = 0;
  virtual absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current,
                                                const ClusterSpec& cluster,
                                                const Submission& next) const = 0;
  virtual std::string HostOf(const TaskId& task) const = 0;
  // Whether the task's host answers, or why it does not.
  virtual absl::Status Reachability(const TaskId& task) const = 0;

  virtual void SetPolicies(const Policies& policies) = 0;
  virtual void Start(const TaskStart& start) = 0;
  // Asks the task to end, or (kill) ends its whole process tree.
  virtual void End(const TaskId& task, bool kill) = 0;
  // It is no longer part of the job, and has ended.
  virtual void Forget(const TaskId& task) = 0;

  virtual void OnChildren() = 0;  // of this process have ended
  virtual absl::Time next_timer() const = 0;
  virtual void Advance() = 0;
  // After the job's end: whether nothing is left to be done anywhere.
  virtual bool Finish() = 0;
};

}  // namespace muster
