// Shared by the tests of Lifecycle: job builders, and a simulated platform with a manual clock.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "supervise/lifecycle.h"

namespace muster::supervise {

inline job::RoleSpec Role(std::string name, int replicas = 1,
                          job::RestartPolicy restart = job::RestartPolicy::kExitCode) {
  job::RoleSpec role;
  role.name = std::move(name);
  role.replicas = replicas;
  role.restart = restart;
  role.command = {"true"};
  return role;
}

inline job::JobSpec Job(std::vector<job::RoleSpec> roles, job::Policies policies = {}) {
  job::JobSpec spec;
  spec.name = "test";
  spec.roles = std::move(roles);
  spec.policies = policies;
  return spec;
}

inline const cluster::TaskId kChief{"chief", 0};
inline const cluster::TaskId kPs{"ps", 0};
inline const cluster::TaskId kWorker0{"worker", 0};
inline const cluster::TaskId kWorker1{"worker", 1};

inline AttemptEnd ExitWith(int code) {
  return {.exit_code = code, .reason = absl::StrCat("exit code ", code)};
}

// Carries out the actions of a Lifecycle. A started task runs immediately; a task that is requested
// to end runs until the test ends it.
class Play {
 public:
  explicit Play(job::JobSpec spec) : life_(std::move(spec), now_) { Settle(); }

  Lifecycle& life() { return life_; }
  absl::Time now() const { return now_; }
  job::TaskState StateOf(const cluster::TaskId& task) const { return life_.tasks().at(task).state; }
  bool Runs(const cluster::TaskId& task) const { return running_.contains(task); }

  // Returns the actions since the last call: "start worker:0#1", "term ps:0", "kill ps:0".
  std::vector<std::string> Take() { return std::exchange(asked_, {}); }

  // Ends the task's process.
  void Exit(const cluster::TaskId& task, int code) { End(task, ExitWith(code)); }
  void End(const cluster::TaskId& task, const AttemptEnd& end) {
    EXPECT_EQ(running_.erase(task), 1u) << task.ToString() << " does not run";
    life_.OnEnded(task, end, now_);
    Turn();
  }
  void Ready(const cluster::TaskId& task) {
    life_.OnReady(task, now_);
    Turn();
  }
  void Stall(const cluster::TaskId& task, const std::string& why) {
    life_.OnStalled(task, why, now_);
    Turn();
  }
  void Stop(bool immediately = false) {
    life_.RequestStop("stopped by the user", immediately, now_);
    Turn();
  }
  absl::Status Update(job::JobSpec spec, const UpdatePlan& plan) {
    const absl::Status status = life_.Update(std::move(spec), plan, now_);
    Turn();
    return status;
  }

  // Advances the clock from timer to timer, as a supervisor does.
  void Pass(absl::Duration duration) {
    const absl::Time end = now_ + duration;
    for (int turns = 0; life_.next_timer() <= end; ++turns) {
      ASSERT_LT(turns, 10000) << "spins";
      now_ = std::max(now_, life_.next_timer());
      Turn();
      if (life_.done()) break;
    }
    now_ = end;
  }

  std::vector<std::string> Events() {
    std::vector<std::string> texts;
    for (const job::Event& event : life_.TakeEvents()) {
      texts.push_back(absl::StrCat(event.kind, "|", event.subject, "|", event.message));
    }
    return texts;
  }

 private:
  void Turn() {
    life_.Advance(now_);
    Settle();
  }

  void Settle() {
    for (auto actions = life_.TakeActions(); !actions.empty(); actions = life_.TakeActions()) {
      for (const Lifecycle::Action& action : actions) std::visit(*this, action);
    }
  }

 public:
  void operator()(const Lifecycle::Start& start) {
    const auto task = life_.tasks().find(start.task);
    if (task == life_.tasks().end() || task->second.state != job::TaskState::kPending ||
        task->second.attempt != start.attempt) {
      return;
    }
    asked_.push_back(absl::StrCat("start ", start.task.ToString(), "#", start.attempt));
    EXPECT_TRUE(running_.insert(start.task).second)
        << start.task.ToString() << " would run twice at once";
    life_.OnStarted(start.task, now_);
  }
  void operator()(const Lifecycle::End& end) {
    asked_.push_back(absl::StrCat(end.kill ? "kill " : "term ", end.task.ToString()));
  }
  void operator()(const Lifecycle::MovePort& move) {
    asked_.push_back(absl::StrCat("move ", move.task.ToString()));
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  Lifecycle life_;
  std::set<cluster::TaskId> running_;
  std::vector<std::string> asked_;
};

}  // namespace muster::supervise
