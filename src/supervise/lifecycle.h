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

namespace muster::supervise {

// The outcome of an attempt, as reported by the platform.
struct AttemptEnd {
  std::optional<int> exit_code;  // 128 + n for signal n; nullopt if it never started
  std::string reason;            // "exit code 1", "out of memory: …"
  std::string advice;
  std::vector<std::string> last_lines;
  bool may_retry = true;                // false if a retry cannot help (no such program)
  bool port_taken = false;              // another process held the port that Muster had picked
  std::optional<absl::Time> time = {};  // when it ended, if the report may be delayed
  bool unrequested = false;             // it ended before the request to end reached it
};

// The difference between a running job and its new description.
struct UpdatePlan {
  std::vector<cluster::TaskId> added;
  std::vector<cluster::TaskId> removed;
  std::vector<cluster::TaskId> restarted;
  std::vector<cluster::TaskId> kept;
  bool policies_changed = false;
  bool empty() const {
    return added.empty() && removed.empty() && restarted.empty() && !policies_changed;
  }
};

//            all up                     verdict                  tasks ended
//  Active ───────────> (Running) ───────────────────> Ending ─────────────────> Done
//    │ ^                                                ^
//    │ └── every task ended, back-off over ────┐        │ stop, failure, deadline
//    └── retryable failure, scope = job ──> RestartingAll ─┘
//
// A task goes Pending → Starting → Running → a final state, or → Restarting → Pending.
// The first verdict is final. A failure reported later may still replace the one named as its
// cause, if it happened earlier. Not thread-safe.
class Lifecycle {
 public:
  struct Start {
    cluster::TaskId task;
    int attempt;
  };
  // Requests the task to end, or (kill) kills its whole process tree.
  struct End {
    cluster::TaskId task;
    bool kill;
  };
  // Assigns another port to the task before it starts again.
  struct MovePort {
    cluster::TaskId task;
  };
  using Action = std::variant<Start, End, MovePort>;

  struct Task {
    job::TaskState state = job::TaskState::kPending;
    int attempt = -1;  // -1 before the first
    int restarts = 0;
    std::optional<absl::Time> started;
    std::optional<absl::Time> finished;
    std::optional<int> exit_code;
    std::string reason;

   private:
    friend class Lifecycle;
    enum class AfterEnd { kNothing, kRestart, kRemove };

    bool alive() const {
      return state == job::TaskState::kStarting || state == job::TaskState::kRunning;
    }
    bool may_run() const { return alive() || sent; }

    bool sent = false;         // passed to the runner, which has not reported on it yet
    bool ending = false;       // a request to end was issued
    bool unreachable = false;  // its host is unreachable
    AfterEnd after_end = AfterEnd::kNothing;  // once a requested end has happened
    std::string stall;                        // why the watchdog kills it; "" if it does not
    absl::Time ready_by = absl::InfiniteFuture();
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
  };

  // Queues a Start for every task. The caller must skip a Start whose task is no longer Pending in
  // that attempt when it is carried out.
  Lifecycle(job::JobSpec spec, absl::Time now);

  void OnSent(const cluster::TaskId& id);                     // a runner has taken its Start
  void OnStarted(const cluster::TaskId& id, absl::Time now);  // its process exists
  void OnReady(const cluster::TaskId& id, absl::Time now);    // its port has a listener
  void OnEnded(const cluster::TaskId& id, const AttemptEnd& end, absl::Time now);
  void OnStalled(const cluster::TaskId& id, const std::string& why, absl::Time now);
  // Marks the task's host as unreachable or reachable. The start timeout is suspended while the
  // host is unreachable, and starts over when it is reachable again.
  void SetUnreachable(const cluster::TaskId& id, bool unreachable, absl::Time now);
  // Ends the job with the verdict Stopped, unless it has a verdict already. With `immediately`,
  // also after an earlier call, kills the tasks without waiting for the grace period.
  void RequestStop(const std::string& why, bool immediately, absl::Time now);
  // Returns FailedPrecondition while the whole job restarts and once it is ending.
  absl::Status MayUpdate() const;
  // Replaces the description of the job and applies `plan`, which was made for it. Returns an
  // error, and changes nothing, if MayUpdate() does.
  absl::Status Update(job::JobSpec spec, const UpdatePlan& plan, absl::Time now);
  // Fires the timers that are due.
  void Advance(absl::Time now);

  // Each Take function returns what was added since its last call.
  std::vector<Action> TakeActions();
  std::vector<job::Event> TakeEvents();
  std::set<cluster::TaskId> TakeChanged();  // tasks whose record changed
  // Returns the time by which Advance() must be called; InfiniteFuture if no timer is set.
  absl::Time next_timer() const;

  bool done() const { return phase_ == Phase::kDone; }
  bool ending() const { return phase_ == Phase::kEnding || phase_ == Phase::kDone; }
  job::JobState state() const;
  const std::string& reason() const { return reason_; }
  const std::map<cluster::TaskId, Task>& tasks() const { return tasks_; }
  const job::JobSpec& spec() const { return spec_; }
  // Set once the verdict is Failed; complete once done().
  const std::optional<job::FailureReport>& failure() const { return failure_; }

 private:
  enum class Phase { kActive, kRestartingAll, kEnding, kDone };
  // The cause of a failed job.
  struct Verdict {
    std::string why;
    std::set<cluster::TaskId> named = {};  // tasks named by `why`
    std::string not_restarted = {};        // see FailureReport
  };

  void StartTask(const cluster::TaskId& id, Task& task, absl::Time now);
  void EndTask(const cluster::TaskId& id, Task& task, absl::Time now);
  void SetState(const cluster::TaskId& id, Task& task, job::TaskState state, std::string reason);
  void OnRequestedEnd(const cluster::TaskId& id, Task& task, absl::Time now);
  void OnFailure(const cluster::TaskId& id, Task& task, const AttemptEnd& end, absl::Time now);
  // Records the failure and returns its cause.
  std::string RecordFailure(const cluster::TaskId& id, const Task& task, const AttemptEnd& end,
                            absl::Time now);
  void ScheduleRestart(const cluster::TaskId& id, Task& task, std::string why, absl::Time now);
  void RestartAll(const std::string& why, absl::Duration delay, absl::Time now);
  void FailJob(Verdict verdict, absl::Time now);
  void NameFirstFailure();
  void DropStarts();
  void BeginEnding(job::JobState verdict, std::string reason, absl::Time now);
  void ContinueEnding(absl::Time now);
  void CheckProgress(absl::Time now);
  bool Decides(const cluster::TaskId& id) const;
  bool Succeeded() const;
  bool NoTaskCanSucceed() const;
  bool AllUp() const;
  bool AnyAlive() const;
  void AdvanceTask(const cluster::TaskId& id, Task& task, absl::Time now);
  void CheckStart(absl::Time now);
  void AddEvent(absl::Time now, std::string kind, const std::string& subject, std::string message);

  job::JobSpec spec_;
  const absl::Time began_;
  Phase phase_ = Phase::kActive;
  std::map<cluster::TaskId, Task> tasks_;
  bool was_up_ = false;             // all tasks have been up at the same time
  bool others_may_finish_ = false;  // the job succeeded, and finish_at_ has not passed
  int port_moves_ = 0;
  job::JobState verdict_ = job::JobState::kPending;
  std::string reason_;
  // The first failure of each task since the job last ran without one for a while. The earliest is
  // the root cause; the other tasks are victims.
  std::vector<job::TaskFailure> failures_;
  std::optional<job::FailureReport> failure_;
  std::set<cluster::TaskId> named_;  // tasks named by reason_ of a failed job

  absl::Time deadline_at_ = absl::InfiniteFuture();
  absl::Time finish_at_ = absl::InfiniteFuture();  // after success: when the other tasks are ended
  absl::Time restart_all_at_ = absl::InfiniteFuture();  // earliest restart of the whole job
  absl::Time recovered_at_ = absl::InfiniteFuture();    // when failures_ is cleared

  std::vector<Action> actions_;
  std::vector<job::Event> events_;
  std::set<cluster::TaskId> changed_;
};

}  // namespace muster::supervise
