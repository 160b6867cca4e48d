#include "supervise/lifecycle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "job/failure_report.h"
#include "job/success_policy.h"
#include "supervise/restart_limits.h"

namespace muster::supervise {
namespace {

using cluster::TaskId;

// Losing a port between check and bind is a rare race; repeated losses have another cause.
constexpr int kMaxPortMoves = 3;
// A job whose tasks were all up for this long has recovered from earlier failures.
constexpr absl::Duration kRecoveryPeriod = absl::Seconds(10);
// SIGKILL is repeated at this interval while the kernel has not released the process.
constexpr absl::Duration kKillInterval = absl::Seconds(5);

bool IsParameterServer(const TaskId& id) { return id.role == "ps"; }

}  // namespace

Lifecycle::Lifecycle(job::JobSpec spec, absl::Time now) : spec_(std::move(spec)), began_(now) {
  if (spec_.policies.deadline.has_value()) deadline_at_ = began_ + *spec_.policies.deadline;
  for (const TaskId& id : spec_.Tasks()) StartTask(id, tasks_[id], now);
}

void Lifecycle::StartTask(const TaskId& id, Task& task, absl::Time now) {
  ++task.attempt;
  task.ending = task.sent = false;
  task.after_end = Task::AfterEnd::kNothing;
  task.stall.clear();
  task.restart_at = task.kill_at = absl::InfiniteFuture();
  task.ready_by = now + spec_.policies.start_timeout;
  task.finished.reset();
  task.exit_code.reset();
  SetState(id, task, job::TaskState::kPending, "");
  actions_.push_back(Start{id, task.attempt});
}

void Lifecycle::EndTask(const TaskId& id, Task& task, absl::Time now) {
  if (!task.may_run() || task.ending) return;
  task.ending = true;
  task.kill_at = now + spec_.policies.stop_grace;
  actions_.push_back(End{id, /*kill=*/false});
}

void Lifecycle::SetState(const TaskId& id, Task& task, job::TaskState state, std::string reason) {
  task.state = state;
  task.reason = std::move(reason);
  changed_.insert(id);
}

void Lifecycle::AddEvent(absl::Time now, std::string kind, const std::string& subject,
                         std::string message) {
  events_.push_back(
      {.time = now, .kind = std::move(kind), .subject = subject, .message = std::move(message)});
}

void Lifecycle::OnSent(const TaskId& id) { tasks_.at(id).sent = true; }

void Lifecycle::OnStarted(const TaskId& id, absl::Time now) {
  Task& task = tasks_.at(id);
  task.sent = false;
  task.started = now;
  SetState(id, task, job::TaskState::kStarting, "");
  const job::RoleSpec* role = spec_.FindRole(id.role);
  if (role == nullptr || role->ready == job::Readiness::kStarted) {
    OnReady(id, now);
    return;
  }
  AddEvent(now, "task", id.ToString(), "started; waiting until it listens");
}

void Lifecycle::OnReady(const TaskId& id, absl::Time now) {
  Task& task = tasks_.at(id);
  if (task.state != job::TaskState::kStarting) return;
  task.ready_by = absl::InfiniteFuture();
  SetState(id, task, job::TaskState::kRunning, "");
  AddEvent(now, "task", id.ToString(), "running");
  CheckProgress(now);
}

void Lifecycle::SetUnreachable(const TaskId& id, bool unreachable, absl::Time now) {
  Task& task = tasks_.at(id);
  task.unreachable = unreachable;
  if (task.ready_by != absl::InfiniteFuture()) task.ready_by = now + spec_.policies.start_timeout;
}

void Lifecycle::OnEnded(const TaskId& id, const AttemptEnd& end, absl::Time now) {
  Task& task = tasks_.at(id);
  task.finished = end.time.value_or(now);
  task.sent = false;
  task.exit_code = end.exit_code;
  task.kill_at = task.ready_by = absl::InfiniteFuture();
  // A task, such as a ps, that exits with 0 once the job has succeeded was not cut short.
  const bool exited_cleanly =
      phase_ == Phase::kEnding && verdict_ == job::JobState::kSucceeded && end.exit_code == 0;
  if (task.ending && !end.unrequested && !exited_cleanly) {
    OnRequestedEnd(id, task, now);
  } else if (end.exit_code == 0) {
    const job::RoleSpec* role = spec_.FindRole(id.role);
    AddEvent(now, "task", id.ToString(), "succeeded");
    if (phase_ == Phase::kActive && MayRestart(*role, spec_.policies, task.restarts, end)) {
      ScheduleRestart(id, task, "after it succeeded", now);
    } else {
      SetState(id, task, job::TaskState::kSucceeded, "");
    }
  } else if (phase_ == Phase::kActive) {
    OnFailure(id, task, end, now);
  } else {
    RecordFailure(id, task, end, now);
    SetState(id, task, job::TaskState::kFailed, end.reason);
  }
  CheckProgress(now);
}

void Lifecycle::OnRequestedEnd(const TaskId& id, Task& task, absl::Time now) {
  switch (task.after_end) {
    case Task::AfterEnd::kRemove:
      AddEvent(now, "task", id.ToString(), "removed from the job");
      tasks_.erase(id);
      changed_.erase(id);
      return;
    case Task::AfterEnd::kRestart:
      if (phase_ == Phase::kActive) {
        StartTask(id, task, now);
        return;
      }
      break;
    case Task::AfterEnd::kNothing:
      break;
  }
  if (phase_ == Phase::kRestartingAll) {
    SetState(id, task, job::TaskState::kRestarting, "waiting for the whole job to restart");
  } else {
    SetState(id, task, job::TaskState::kStopped, "stopped by muster");
  }
}

std::string Lifecycle::RecordFailure(const TaskId& id, const Task& task, const AttemptEnd& end,
                                     absl::Time now) {
  std::string cause = task.stall.empty() ? end.reason : task.stall;
  AddEvent(now, "task", id.ToString(), absl::StrCat("failed: ", cause));
  recovered_at_ = absl::InfiniteFuture();
  // Only the first failure of a task is kept, because it is closest to the root cause.
  const bool known = std::ranges::find(failures_, id, &job::TaskFailure::task) != failures_.end();
  if (known) return cause;
  failures_.push_back({.task = id,
                       .attempt = task.attempt,
                       .time = end.time.value_or(now),
                       .exit_code = end.exit_code,
                       .cause = cause,
                       .advice = end.advice,
                       .last_lines = end.last_lines});
  return cause;
}

void Lifecycle::OnFailure(const TaskId& id, Task& task, const AttemptEnd& end, absl::Time now) {
  const std::string cause = RecordFailure(id, task, end, now);
  if (end.port_taken && port_moves_ < kMaxPortMoves) {
    ++port_moves_;
    SetState(id, task, job::TaskState::kRestarting, cause);
    actions_.push_back(MovePort{id});
    RestartAll(absl::StrCat(id.ToString(), ": port in use; every task restarts with another port"),
               absl::ZeroDuration(), now);
    return;
  }
  const job::RoleSpec& role = *spec_.FindRole(id.role);
  if (MayRestart(role, spec_.policies, task.restarts, end)) {
    if (spec_.policies.restart_scope == job::RestartScope::kTask) {
      ScheduleRestart(id, task, absl::StrCat("after ", cause), now);
      return;
    }
    ++task.restarts;
    SetState(id, task, job::TaskState::kRestarting, cause);
    RestartAll(absl::StrCat(id.ToString(), " failed (", cause, "); the whole job restarts, ",
                            task.restarts, " of ", spec_.policies.max_restarts),
               RestartDelay(spec_.policies, task.restarts), now);
    return;
  }
  SetState(id, task, job::TaskState::kFailed, cause);
  if (spec_.dynamic_workers && id.role == "worker" && !Decides(id)) return;  // the job continues
  const std::string often =
      task.restarts > 0 ? absl::StrCat(" after ", base::Plural(task.restarts, "restart")) : "";
  const std::string final = WhyFinal(role, spec_.policies, end);
  FailJob({.why = absl::StrCat(id.ToString(), " failed", often, ": ", cause),
           .named = {id},
           .not_restarted = final.empty() ? "" : absl::StrCat(id.ToString(), ": ", final)},
          now);
}

void Lifecycle::ScheduleRestart(const TaskId& id, Task& task, std::string why, absl::Time now) {
  ++task.restarts;
  const absl::Duration delay = RestartDelay(spec_.policies, task.restarts);
  task.restart_at = now + delay;
  AddEvent(now, "restart", id.ToString(),
           absl::StrCat("restarts in ", base::DurationToString(delay), " (", task.restarts, " of ",
                        spec_.policies.max_restarts, ")"));
  SetState(id, task, job::TaskState::kRestarting, std::move(why));
}

// Ends every task. Advance() starts all of them again once the last has ended.
void Lifecycle::RestartAll(const std::string& why, absl::Duration delay, absl::Time now) {
  phase_ = Phase::kRestartingAll;
  restart_all_at_ = now + delay;
  AddEvent(now, "restart", "", why);
  for (auto& [id, task] : tasks_) {
    task.restart_at = task.ready_by = absl::InfiniteFuture();
    if (task.may_run()) {
      EndTask(id, task, now);
    } else {
      SetState(id, task, job::TaskState::kRestarting, task.reason);
    }
  }
  DropStarts();
}

void Lifecycle::OnStalled(const TaskId& id, const std::string& why, absl::Time now) {
  Task& task = tasks_.at(id);
  if (!task.alive() || task.ending || !spec_.policies.stall.has_value()) return;
  AddEvent(now, "stall", id.ToString(), why);
  if (spec_.policies.stall->action == job::StallAction::kReport) {
    SetState(id, task, task.state, why);
    return;
  }
  task.stall = why;
  task.kill_at = now + kKillInterval;
  actions_.push_back(End{id, /*kill=*/true});
}

void Lifecycle::FailJob(Verdict verdict, absl::Time now) {
  if (ending()) return;
  failure_ = job::FailureReport{.summary = verdict.why, .not_restarted = verdict.not_restarted};
  named_ = std::move(verdict.named);
  BeginEnding(job::JobState::kFailed, std::move(verdict.why), now);
}

// Names the earliest failure. Called again at the end, since hosts may report out of order.
void Lifecycle::NameFirstFailure() {
  const auto first = job::EarliestFailure(failures_);
  if (!failure_.has_value() || named_.empty() || first == failures_.end()) return;
  if (named_.contains(first->task)) return;
  named_ = {first->task};
  reason_ = absl::StrCat(first->task.ToString(), " failed: ", first->cause);
  failure_->summary = reason_;
}

void Lifecycle::RequestStop(const std::string& why, bool immediately, absl::Time now) {
  if (phase_ == Phase::kDone) return;
  if (!ending() || verdict_ == job::JobState::kSucceeded) {
    // Stopping a succeeded job shortens the wait for its last tasks; the verdict stands.
    if (ending()) {
      finish_at_ = absl::InfinitePast();
    } else {
      BeginEnding(job::JobState::kStopped, why, now);
    }
  }
  if (immediately) {
    for (auto& [id, task] : tasks_) {
      if (!task.may_run()) continue;
      task.ending = true;
      task.kill_at = now;
    }
  }
  Advance(now);
}

// The caller skips a Start that it has already taken, because its task is no longer Pending.
void Lifecycle::DropStarts() {
  std::erase_if(actions_,
                [](const Action& action) { return std::holds_alternative<Start>(action); });
}

void Lifecycle::BeginEnding(job::JobState verdict, std::string reason, absl::Time now) {
  phase_ = Phase::kEnding;
  verdict_ = verdict;
  reason_ = std::move(reason);
  NameFirstFailure();
  deadline_at_ = restart_all_at_ = recovered_at_ = absl::InfiniteFuture();
  others_may_finish_ = verdict == job::JobState::kSucceeded;
  if (others_may_finish_) finish_at_ = now + spec_.policies.finish_grace;
  for (auto& [id, task] : tasks_) {
    task.ready_by = absl::InfiniteFuture();
    if (task.may_run() || job::IsFinal(task.state)) continue;
    task.restart_at = absl::InfiniteFuture();
    SetState(id, task, job::TaskState::kStopped, "stopped by muster");
  }
  DropStarts();
  ContinueEnding(now);
}

void Lifecycle::ContinueEnding(absl::Time now) {
  bool others_alive = false;
  for (auto& [id, task] : tasks_) {
    if (IsParameterServer(id) && verdict_ == job::JobState::kSucceeded) continue;  // it ends last
    if (!others_may_finish_) EndTask(id, task, now);
    others_alive |= task.may_run();
  }
  if (!others_alive) {
    for (auto& [id, task] : tasks_) EndTask(id, task, now);
  }
  if (AnyAlive()) return;
  phase_ = Phase::kDone;
  finish_at_ = absl::InfiniteFuture();
  NameFirstFailure();
  if (failure_.has_value() && !failures_.empty()) {
    std::vector<std::string> stopped;
    for (const auto& [id, task] : tasks_) {
      if (task.state == job::TaskState::kStopped && task.started.has_value()) {
        stopped.push_back(id.ToString());
      }
    }
    job::CompleteReport(failures_, stopped, *failure_);
  }
  AddEvent(now, "job", "", absl::StrCat(ToString(verdict_), reason_.empty() ? "" : ": ", reason_));
}

bool Lifecycle::Decides(const TaskId& id) const { return job::DecidingTask(spec_) == id; }

bool Lifecycle::Succeeded() const {
  return job::HasSucceeded(spec_, [this](const TaskId& id) {
    const auto it = tasks_.find(id);
    return it != tasks_.end() && it->second.state == job::TaskState::kSucceeded;
  });
}

// Returns true if no task is left that could make the job succeed.
bool Lifecycle::NoTaskCanSucceed() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [this](const auto& entry) {
    return job::ServesOthers(spec_, entry.first.role) || job::IsFinal(entry.second.state);
  });
}

bool Lifecycle::AnyAlive() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& entry) { return entry.second.may_run(); });
}

bool Lifecycle::AllUp() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& entry) {
    const job::TaskState state = entry.second.state;
    return state == job::TaskState::kRunning || job::IsFinal(state);
  });
}

void Lifecycle::CheckProgress(absl::Time now) {
  if (phase_ == Phase::kEnding) {
    ContinueEnding(now);
    return;
  }
  if (phase_ != Phase::kActive) return;
  if (Succeeded()) {
    BeginEnding(job::JobState::kSucceeded, "", now);
    return;
  }
  if (NoTaskCanSucceed()) {
    FailJob({.why = "every task has ended, and not all of them succeeded"}, now);
    return;
  }
  if (!AllUp()) return;
  if (!was_up_) {
    was_up_ = true;
    AddEvent(now, "job", "", "Running: every task is up");
  }
  if (!failures_.empty() && recovered_at_ == absl::InfiniteFuture())
    recovered_at_ = now + kRecoveryPeriod;
}

absl::Status Lifecycle::MayUpdate() const {
  if (phase_ == Phase::kActive) return absl::OkStatus();
  return absl::FailedPreconditionError("the job is ending or restarting; try again later");
}

absl::Status Lifecycle::Update(job::JobSpec spec, const UpdatePlan& plan, absl::Time now) {
  if (absl::Status status = MayUpdate(); !status.ok()) return status;
  spec_ = std::move(spec);
  deadline_at_ = began_ + spec_.policies.deadline.value_or(absl::InfiniteDuration());
  for (const TaskId& id : plan.removed) {
    Task& task = tasks_.at(id);
    task.after_end = Task::AfterEnd::kRemove;
    EndTask(id, task, now);
    if (!task.alive()) tasks_.erase(id);
  }
  for (const TaskId& id : plan.restarted) {
    Task& task = tasks_.at(id);
    task.after_end = Task::AfterEnd::kRestart;
    EndTask(id, task, now);
    if (!task.alive()) StartTask(id, task, now);
  }
  for (const TaskId& id : plan.added) {
    Task& task = tasks_[id];
    task.after_end = Task::AfterEnd::kRestart;  // if an earlier update is still removing it
    if (!task.alive()) StartTask(id, task, now);
  }
  for (auto& [id, task] : tasks_) {
    const job::RoleSpec* role = spec_.FindRole(id.role);
    const bool waits = task.state == job::TaskState::kStarting && !task.ending;
    if (waits && role->ready == job::Readiness::kStarted) OnReady(id, now);
  }
  AddEvent(now, "update", "",
           absl::StrCat(
               "job changed: ", base::Plural(static_cast<int64_t>(plan.restarted.size()), "task"),
               " restarted, ", plan.added.size(), " added, ", plan.removed.size(), " removed"));
  CheckProgress(now);
  return absl::OkStatus();
}

void Lifecycle::AdvanceTask(const TaskId& id, Task& task, absl::Time now) {
  if (task.restart_at <= now && phase_ == Phase::kActive) StartTask(id, task, now);
  if (task.kill_at <= now && task.may_run()) {
    task.kill_at = now + kKillInterval;
    actions_.push_back(End{id, /*kill=*/true});
  }
}

// Fails the job if tasks are not ready in time, and names all of them.
void Lifecycle::CheckStart(absl::Time now) {
  if (phase_ != Phase::kActive) return;
  std::vector<std::string> missing;
  std::set<TaskId> named;
  const std::string limit = base::DurationToString(spec_.policies.start_timeout);
  for (const auto& [id, task] : tasks_) {
    if (task.unreachable || task.ready_by > now) continue;
    missing.push_back(id.ToString());
    named.insert(id);
    failures_.push_back({.task = id,
                         .attempt = task.attempt,
                         .time = now,
                         .cause = absl::StrCat("not ready within ", limit),
                         .advice = "if it needs longer, raise policies.start_timeout"});
  }
  if (missing.empty()) return;
  const char* state = missing.size() == 1
                          ? ": its process runs but does not listen on its port"
                          : ": their processes run but do not listen on their ports";
  FailJob({.why = absl::StrCat(job::Enumerate(missing), " did not start within ", limit, state),
           .named = std::move(named)},
          now);
}

void Lifecycle::Advance(absl::Time now) {
  if (phase_ == Phase::kDone) return;
  for (auto& [id, task] : tasks_) AdvanceTask(id, task, now);
  CheckStart(now);
  if (deadline_at_ <= now) {
    FailJob({.why = absl::StrCat("deadline of ", base::DurationToString(*spec_.policies.deadline),
                                 " passed")},
            now);
  }
  if (recovered_at_ <= now) {
    recovered_at_ = absl::InfiniteFuture();
    failures_.clear();
  }
  if (phase_ == Phase::kRestartingAll && restart_all_at_ <= now && !AnyAlive()) {
    phase_ = Phase::kActive;
    restart_all_at_ = absl::InfiniteFuture();
    for (auto& [id, task] : tasks_) StartTask(id, task, now);
  }
  if (finish_at_ <= now) {
    finish_at_ = absl::InfiniteFuture();
    others_may_finish_ = false;
  }
  if (phase_ == Phase::kEnding) ContinueEnding(now);
}

absl::Time Lifecycle::next_timer() const {
  absl::Time next = std::min({deadline_at_, finish_at_, recovered_at_});
  if (phase_ == Phase::kRestartingAll && !AnyAlive()) next = std::min(next, restart_all_at_);
  for (const auto& [id, task] : tasks_) {
    next = std::min({next, task.kill_at, task.restart_at});
    if (!task.unreachable) next = std::min(next, task.ready_by);
  }
  return next;
}

job::JobState Lifecycle::state() const {
  if (phase_ == Phase::kDone) return verdict_;
  if (phase_ == Phase::kRestartingAll) return job::JobState::kRestarting;
  if (phase_ == Phase::kEnding || AllUp()) return job::JobState::kRunning;
  return was_up_ ? job::JobState::kRestarting : job::JobState::kStarting;
}

std::vector<Lifecycle::Action> Lifecycle::TakeActions() { return std::exchange(actions_, {}); }
std::vector<job::Event> Lifecycle::TakeEvents() { return std::exchange(events_, {}); }
std::set<TaskId> Lifecycle::TakeChanged() { return std::exchange(changed_, {}); }

}  // namespace muster::supervise
