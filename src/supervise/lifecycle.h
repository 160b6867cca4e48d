// The state machine of a job: the restart, success, deadline and stop rules of every platform that
// runs tasks itself. It performs no I/O and reads no clock: the caller reports events with their
// time, and carries out the actions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/failure.h"
#include "job/job_spec.h"
#include "job/states.h"

namespace muster {

// The outcome of an attempt, as reported by the platform.
struct AttemptEnd {
  std::optional<int> exit_code;  // 128 + n for signal n; nullopt if it never started
  std::string reason;            // "exit code 1", "out of memory: …"
  std::string advice;
  std::vector<std::string> last_lines;
  bool may_retry = true;                // false if a retry cannot help (no such program)
  bool port_taken = false;              // another process held the port that Muster had picked
  std::optional<absl::Time> time = {};  // when it ended, if the report may be delayed
  bool unasked = false;                 // it ended before the request to end reached it
};

// The difference between a running job and its new description.
struct UpdatePlan {
  std::vector<TaskId> added;
  std::vector<TaskId> removed;
  std::vector<TaskId> restarted;
  std::vector<TaskId> kept;
  bool policies_changed = false;
  bool empty() const {
    return added.empty() && removed.empty() && restarted.empty() && !policies_changed;
  }
};

//            all up                     verdict                  tasks ended
//  Active ───────────> (Running) ───────────────────> Ending ─────────────────> Done
//    │ ^                                                ^
//    │ └── every task ended, back-off over ──┐          │ stop, failure, deadline
//    └── retryable failure, scope = job ──> Regrouping ─┘
//
// A task goes Pending → Starting → Running → a final state, or → Restarting → Pending.
// The first verdict is final. A failure reported later may still replace the one named as its
// cause, if it happened earlier. Not thread-safe.
class Lifecycle {
 public:
  struct Start {
    TaskId task;
    int attempt;
  };
  // Requests the task to end, or (kill) kills its whole process tree.
  struct End {
    TaskId task;
    bool kill;
  };
  // Assigns another port to the task before it starts again.
  struct MovePort {
    TaskId task;
  };
  using Action = std::variant<Start, End, MovePort>;

  struct Task {
    TaskState state = TaskState::kPending;
    int attempt = -1;  // -1 before the first
    int restarts = 0;
    std::optional<absl::Time> started;
    std::optional<absl::Time> finished;
    std::optional<int> exit_code;
    std::string reason;

   private:
    friend class Lifecycle;
    enum class Afterwards { kNothing, kRestart, kRemove };

    bool alive() const { return state == TaskState::kStarting || state == TaskState::kRunning; }
    bool may_run() const { return alive() || sent; }

    bool sent = false;    // passed to the runner, which has not reported on it yet
    bool ending = false;  // a request to end was issued
    bool silent = false;  // its host is unreachable
    Afterwards afterwards = Afterwards::kNothing;  // once a requested end has happened
    std::string stall;                             // why the watchdog kills it; "" if it does not
    absl::Time ready_by = absl::InfiniteFuture();
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
  };

  // Queues a Start for every task. The caller must skip a Start whose task is no longer Pending in
  // that attempt when it is carried out.
  Lifecycle(JobSpec spec, absl::Time now);

  void OnSent(const TaskId& id);                     // a runner has taken its Start
  void OnStarted(const TaskId& id, absl::Time now);  // its process exists
  void OnReady(const TaskId& id, absl::Time now);    // its port has a listener
  void OnEnded(const TaskId& id, const AttemptEnd& end, absl::Time now);
  void OnStalled(const TaskId& id, const std::string& why, absl::Time now);
  // Marks the task's host as unreachable or reachable. The start timeout is suspended while the
  // host is unreachable, and starts over when it is reachable again.
  void SetSilent(const TaskId& id, bool silent, absl::Time now);
  // Ends the job with the verdict Stopped, unless it has a verdict already. With `immediately`,
  // also after an earlier call, kills the tasks without waiting for the grace period.
  void RequestStop(const std::string& why, bool immediately, absl::Time now);
  // Returns FailedPrecondition while the whole job restarts and once it is ending.
  absl::Status MayUpdate() const;
  // Replaces the description of the job and applies `plan`, which was made for it. Returns an
  // error, and changes nothing, if MayUpdate() does.
  absl::Status Update(JobSpec spec, const UpdatePlan& plan, absl::Time now);
  // Fires the timers that are due.
  void Advance(absl::Time now);

  // Each Take function returns what was added since its last call.
  std::vector<Action> TakeActions();
  std::vector<Event> TakeEvents();
  std::set<TaskId> TakeChanged();  // tasks whose record changed
  // Returns the time by which Advance() must be called; InfiniteFuture if no timer is set.
  absl::Time next_timer() const;

  bool done() const { return phase_ == Phase::kDone; }
  bool ending() const { return phase_ == Phase::kEnding || phase_ == Phase::kDone; }
  JobState state() const;
  const std::string& reason() const { return reason_; }
  const std::map<TaskId, Task>& tasks() const { return tasks_; }
  const JobSpec& spec() const { return spec_; }
  // Set once the verdict is Failed; complete once done().
  const std::optional<FailureReport>& failure() const { return failure_; }

 private:
  enum class Phase { kActive, kRegrouping, kEnding, kDone };
  // The cause of a failed job.
  struct Verdict {
    std::string why;
    std::set<TaskId> named = {};     // tasks named by `why`
    std::string not_restarted = {};  // see FailureReport
  };

  void StartTask(const TaskId& id, Task& task, absl::Time now);
  void EndTask(const TaskId& id, Task& task, absl::Time now);
  void SetState(const TaskId& id, Task& task, TaskState state, std::string reason);
  void AfterRequestedEnd(const TaskId& id, Task& task, absl::Time now);
  void AfterFailure(const TaskId& id, Task& task, const AttemptEnd& end, absl::Time now);
  // Records the failure and returns its cause.
  std::string NoteFailure(const TaskId& id, const Task& task, const AttemptEnd& end,
                          absl::Time now);
  void ScheduleRestart(const TaskId& id, Task& task, std::string why, absl::Time now);
  void Regroup(const std::string& why, absl::Duration delay, absl::Time now);
  void FailJob(Verdict verdict, absl::Time now);
  void NameFirstFailure();
  void DropStarts();
  void BeginEnding(JobState verdict, std::string reason, absl::Time now);
  void ContinueEnding(absl::Time now);
  void CheckProgress(absl::Time now);
  bool Decides(const TaskId& id) const;
  bool Succeeded() const;
  bool NobodyLeft() const;
  bool AllUp() const;
  bool AnyAlive() const;
  void AdvanceTask(const TaskId& id, Task& task, absl::Time now);
  void CheckStart(absl::Time now);
  void AddEvent(absl::Time now, std::string kind, const std::string& subject, std::string message);

  JobSpec spec_;
  const absl::Time began_;
  Phase phase_ = Phase::kActive;
  std::map<TaskId, Task> tasks_;
  bool was_up_ = false;             // all tasks have been up at the same time
  bool others_may_finish_ = false;  // the job succeeded, and finish_at_ has not passed
  int port_moves_ = 0;
  JobState verdict_ = JobState::kPending;
  std::string reason_;
  // The first failure of each task since the job last ran without one for a while. The earliest is
  // the root cause; the other tasks are victims.
  std::vector<TaskFailure> failures_;
  std::optional<FailureReport> failure_;
  std::set<TaskId> named_;  // tasks named by reason_ of a failed job

  absl::Time deadline_at_ = absl::InfiniteFuture();
  absl::Time finish_at_ = absl::InfiniteFuture();   // after success: when the other tasks are ended
  absl::Time regroup_at_ = absl::InfiniteFuture();  // earliest restart of the whole job
  absl::Time forgive_at_ = absl::InfiniteFuture();  // when failures_ is cleared

  std::vector<Action> actions_;
  std::vector<Event> events_;
  std::set<TaskId> changed_;
};

}  // namespace muster
