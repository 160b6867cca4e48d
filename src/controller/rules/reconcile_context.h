// The state of one Reconcile() call: the observed objects of a job, and the plan that it builds.
#pragma once

#include <functional>
#include <string>

#include "controller/rules/children.h"
#include "controller/rules/reconcile.h"

namespace muster::controller {

class ReconcileContext {
 public:
  // All arguments outlive the context.
  ReconcileContext(const TfJob& job, const Observed& observed, absl::Time now);

  const TfJob& job() const { return job_; }
  absl::Time now() const { return now_; }
  Json& status() { return plan_.status; }
  const Slots& pods() const { return pods_.slots; }
  const Slots& services() const { return services_.slots; }
  // Pods of earlier incarnations. They are deleted before new ones are created. A finished job has
  // none.
  const std::vector<Child>& former() const { return former_; }
  // How often the whole job has restarted.
  int incarnation() const;
  // Returns the name of the record in status.restarts for the task.
  std::string RestartRecord(const cluster::TaskId& task) const;
  // Begins a new incarnation: all pods, also those that have succeeded, become former ones.
  void RestartJob();
  // Returns the PodGroup with the name of the job's group, which may have another owner, or null.
  const Json* pod_group() const { return pod_group_; }
  // Returns whether the job has that ConfigMap.
  bool HasConfigMap(const std::string& name) const;
  // Returns null if the task has no pod.
  const Child* PodOf(const cluster::TaskId& task) const;
  // Returns null if the job has no such task, for example after it was scaled down.
  const job::RoleSpec* RoleOf(const cluster::TaskId& task) const;

  void Set(const Condition& condition) { SetCondition(plan_.status, condition, now_); }
  void RecordEvent(bool warning, std::string reason, std::string message);
  void RequeueAt(absl::Time time) { plan_.requeue_at = std::min(plan_.requeue_at, time); }
  void AddAction(Action action) { plan_.actions.push_back(std::move(action)); }
  // Deletes an object. A pod whose deletion has passed its deadline, because its node does not
  // respond, is deleted immediately.
  void Remove(Kind kind, const Child& child, const std::string& reason = "");
  void AdoptOrphans();
  bool IsCreationPending(Kind kind, const std::string& name) const {
    return pending_creations_.contains({kind, name});
  }
  // Creates the object of a task, unless it exists or is pending, its name is taken by another
  // owner, or its backoff has not elapsed.
  void CreateMissing(Kind kind, const cluster::TaskId& task);

  // Sets or removes the ReplicaFailure condition.
  void SetReplicaFailure();
  // Returns false, and requeues the job, if the object was rejected and its backoff has not
  // elapsed.
  bool MayRetryCreate(Kind kind, const std::string& name);

  // Returns whether the task has ever succeeded. The status records it, since the pod may be
  // garbage-collected, and the task must not run again.
  bool HasSucceeded(const cluster::TaskId& task);
  // Returns whether the task's pod is running, and is ready if its template has a readiness probe.
  bool IsUp(const cluster::TaskId& task) const;
  // Sets the outcome and drops all actions: the cleanup begins once the status is written. Returns
  // true.
  bool Finish(const char* type, std::string reason, std::string message);
  // Sets status.replicaStatuses, also after the outcome: pods that are cleaned up are not active.
  void CountReplicas();

  // Why pods are replaced; "" if none are.
  std::string restart_reason;

  Plan TakePlan();

 private:
  void Retire(const std::function<bool(const Child&)>& is_former);
  bool IsFree(const Claims& claims, const cluster::TaskId& task);

  const TfJob& job_;
  const absl::Time now_;
  const Json before_;  // the observed status
  Claims pods_;
  const Claims services_;
  const ObjectNames& pending_creations_;
  const CreateFailures& create_failures_;
  CreateFailures missing_;  // those of create_failures_ whose objects the job still needs
  const Json* pod_group_ = nullptr;
  const std::vector<k8s::Object>& config_maps_;
  std::vector<Child> former_;
  Plan plan_;
};

}  // namespace muster::controller
