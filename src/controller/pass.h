// One look at a job: what is there, and the plan that comes of it.
#pragma once

#include <functional>
#include <string>

#include "controller/children.h"
#include "controller/reconcile.h"

namespace muster::controller {

class Pass {
 public:
  // All of them outlive it.
  Pass(const TfJob& job, const Observed& observed, absl::Time now);

  const TfJob& job() const { return job_; }
  absl::Time now() const { return now_; }
  Json& status() { return plan_.status; }
  const Slots& pods() const { return pods_.slots; }
  const Slots& services() const { return services_.slots; }
  // Pods from before all of the job began anew: they go before the next are made. A job that is
  // over has none.
  const std::vector<Child>& former() const { return former_; }
  // How often it did.
  int life() const;
  // The record in status.restarts that a task's restarts go to.
  std::string RestartRecord(const TaskId& task) const;
  // All pods, also those that have succeeded, are former ones from now on.
  void BeginAnew();
  // What has the name of the job's group, be it another's; null when nothing has.
  const Json* pod_group() const { return pod_group_; }
  // Null when the task has none.
  const Child* PodOf(const TaskId& task) const;
  // Null when the task is none of the job, or not any more.
  const RoleSpec* RoleOf(const TaskId& task) const;

  void Set(const Condition& condition) { SetCondition(plan_.status, condition, now_); }
  void Tell(bool warning, std::string reason, std::string message);
  void Wake(absl::Time time) { plan_.wake = std::min(plan_.wake, time); }
  void Do(Action action) { plan_.actions.push_back(std::move(action)); }
  // Unless that is under way. A pod whose node is lost does not go by itself.
  void Remove(Kind kind, const Child& child, const std::string& why = "");
  void AdoptOrphans();
  bool IsUnderWay(Kind kind, const std::string& name) const {
    return under_way_.contains({kind, name});
  }
  // Makes the object of a task, unless it is there or on its way, its name is another's, or it was
  // refused and is to be tried again later.
  void Make(Kind kind, const TaskId& task);

  // The condition of objects that the API server has refused.
  void SetReplicaFailure();
  // False: an object was refused a moment ago, and is not to be tried before its time.
  bool MayTry(Kind kind, const std::string& name);

  // What has succeeded once is remembered: its pod may be collected, and never runs again.
  bool HasSucceeded(const TaskId& task);
  // Whether its pod is at work, and ready where its template says when that is.
  bool IsUp(const TaskId& task) const;
  // The job is over: the rest is done once that is written. Always true.
  bool Finish(const char* type, std::string reason, std::string message);
  // How many of each role are at work, have succeeded for good, and have failed. After the verdict
  // too: what is cleaned up is not at work.
  void Count();

  // Why pods are made anew, when some failed; "" when none did.
  std::string restarted;

  Plan Take();

 private:
  void Retire(const std::function<bool(const Child&)>& is_former);
  bool IsFree(const Claims& claims, const TaskId& task);

  const TfJob& job_;
  const absl::Time now_;
  const Json before_;  // the status
  Claims pods_;
  const Claims services_;
  const ObjectNames& under_way_;
  const Refusals& refused_;
  Refusals missing_;  // those of refused_ that are still wanted
  const Json* pod_group_ = nullptr;
  std::vector<Child> former_;
  Plan plan_;
};

}  // namespace muster::controller
