// Decides what a job does next: the restart, success, deadline and stop rules of every platform
// that runs tasks itself. Pure: it is told what happened and when, and answers with what to do.
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

// How an attempt ended, as the platform saw it.
struct AttemptEnd {
  std::optional<int> exit_code;  // 128 + n for signal n; none: it never started
  std::string reason;            // "exit code 1", "out of memory: …"
  std::string advice;
  std::vector<std::string> last_lines;
  bool may_retry = true;                // false: another attempt cannot do better (no such program)
  bool port_taken = false;              // a stranger held the port that Muster had picked for it
  std::optional<absl::Time> time = {};  // when it happened, where news take a while
  bool unasked = false;  // it had ended before it was asked to, and the news came later
};

// What changes between the job that runs and a new description of it.
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

//            all up                     verdict                  nobody left
//  Active ───────────> (Running) ───────────────────> Ending ─────────────────> Done
//    │ ^                                                ^
//    │ └── every task ended, back-off over ──┐          │ stop, failure, deadline
//    └── retryable failure, scope = job ──> Regrouping ─┘
//
// Tasks go Pending → Starting → Running → a final state, or → Restarting → Starting.
// The first verdict stands, whatever the tasks do afterwards. Not thread-safe.
class Lifecycle {
 public:
  struct Start {
    TaskId task;
    int attempt;
  };
  // Ask the task to end, or (kill) end its whole process tree now.
  struct End {
    TaskId task;
    bool kill;
  };
  // Pick another port for it before it starts again.
  struct MovePort {
    TaskId task;
  };
  using Action = std::variant<Start, End, MovePort>;

  struct Task {
    TaskState state = TaskState::kPending;
    int attempt = -1;  // none yet
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

    bool sent = false;    // to where it starts, from where nothing was heard yet
    bool ending = false;  // we asked it to end
    bool silent = false;  // what it runs on does not answer
    Afterwards afterwards = Afterwards::kNothing;
    std::string stall;  // why the watchdog kills it; "" = it does not
    absl::Time ready_by = absl::InfiniteFuture();
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
  };

  // Starts every task at once: the actions are there to take. A Start is void when its task is no
  // longer Pending in that attempt by the time it is carried out.
  Lifecycle(JobSpec spec, absl::Time now);

  void OnSent(const TaskId& id);                     // it may start any moment
  void OnStarted(const TaskId& id, absl::Time now);  // its process exists
  void OnReady(const TaskId& id, absl::Time now);    // it listens, where the role waits for that
  void OnEnded(const TaskId& id, const AttemptEnd& end, absl::Time now);
  void OnStalled(const TaskId& id, const std::string& why, absl::Time now);
  // What it runs on does not answer, or does again: what happens there is not known meanwhile, and
  // no time is counted for its start.
  void SetSilent(const TaskId& id, bool silent, absl::Time now);
  // Ends the job as Stopped. A second call with `at_once` does not wait for the grace period.
  void RequestStop(const std::string& why, bool at_once, absl::Time now);
  // FailedPrecondition while the whole job restarts, and once it is ending.
  absl::Status MayUpdate() const;
  // The job as it shall be from now on, when MayUpdate.
  absl::Status Update(JobSpec spec, const UpdatePlan& plan, absl::Time now);
  // Acts on the timers that are due.
  void Advance(absl::Time now);

  std::vector<Action> TakeActions();
  std::vector<Event> TakeEvents();
  std::set<TaskId> TakeChanged();  // tasks whose row changed since the last call
  // When Advance must be called at the latest.
  absl::Time next_timer() const;

  bool done() const { return phase_ == Phase::kDone; }
  bool ending() const { return phase_ == Phase::kEnding || phase_ == Phase::kDone; }
  JobState state() const;
  const std::string& reason() const { return reason_; }
  const std::map<TaskId, Task>& tasks() const { return tasks_; }
  const JobSpec& spec() const { return spec_; }
  // Set once the verdict is Failed.
  const std::optional<FailureReport>& failure() const { return failure_; }

 private:
  enum class Phase { kActive, kRegrouping, kEnding, kDone };
  // Why the job has failed.
  struct Verdict {
    std::string why;
    std::set<TaskId> named = {};     // the tasks that `why` blames
    std::string not_restarted = {};  // see FailureReport
  };

  void StartTask(const TaskId& id, Task& task, absl::Time now);
  void EndTask(const TaskId& id, Task& task, absl::Time now);
  void SetState(const TaskId& id, Task& task, TaskState state, std::string reason);
  void AfterRequestedEnd(const TaskId& id, Task& task, absl::Time now);
  void AfterFailure(const TaskId& id, Task& task, const AttemptEnd& end, absl::Time now);
  // Returns the cause.
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
  bool was_up_ = false;             // every task was up at once, some time
  bool others_may_finish_ = false;  // after success, until finish_at_
  int port_moves_ = 0;
  JobState verdict_ = JobState::kPending;
  std::string reason_;
  // The first failure of each task since the job was last whole for a while; the earliest is the
  // culprit, the others victims.
  std::vector<TaskFailure> failures_;
  std::optional<FailureReport> failure_;
  std::set<TaskId> named_;  // by reason_, when the job has failed

  absl::Time deadline_at_ = absl::InfiniteFuture();
  absl::Time finish_at_ = absl::InfiniteFuture();   // success: when the others are asked to end
  absl::Time regroup_at_ = absl::InfiniteFuture();  // earliest restart of the whole job
  absl::Time forgive_at_ = absl::InfiniteFuture();  // when failures_ is forgotten

  std::vector<Action> actions_;
  std::vector<Event> events_;
  std::set<TaskId> changed_;
};

}  // namespace muster
