#include "controller/rules/reconcile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/rules/gang.h"
#include "controller/rules/outcome.h"
#include "controller/rules/reconcile_context.h"
#include "controller/rules/replicas.h"
#include "job/format/tfjob_format.h"

namespace muster::controller {
namespace {

constexpr char kOwnName[] = "kubeflow.org/training-operator";

// Warns that the restartPolicy of a pod template has no effect.
void WarnOfPolicies(ReconcileContext& context) {
  if (context.job().is_v1alpha1()) return;  // its templates always set one
  for (const job::RoleSpec* role : context.job().roles()) {
    const std::string policy = k8s::TextAt(role->pod, "/spec/restartPolicy");
    if (policy.empty()) continue;
    context.RecordEvent(true, "SetPodTemplateRestartPolicy",
                        absl::StrCat("Restart policy ", policy, " in the pod template of ",
                                     job::TfJobRoleName(role->name),
                                     " is overwritten by that of its replica spec"));
  }
}

bool IsActive(const Child& pod) {
  return pod.phase() == Phase::kRunning || pod.phase() == Phase::kPending;
}

// Returns whether the cleanPodPolicy deletes the pod of a finished job.
bool IsCleanedUp(const ReconcileContext& context, const Child& pod) {
  const std::string policy = context.job().clean_pod_policy();
  return policy == "All" || (policy == "Running" && IsActive(pod));
}

// Returns whether tasks of a succeeded job still have time to exit by themselves. Their services
// stay until then.
bool MayFinish(ReconcileContext& context, absl::Time completed) {
  const absl::Time end = completed + context.job().finish_grace();
  const bool any = std::any_of(context.pods().begin(), context.pods().end(), [](const auto& slot) {
    return !IsTensorboard(slot.first) && IsActive(slot.second);
  });
  if (!any || !IsTrue(context.status(), kSucceeded) || context.now() >= end) return false;
  context.RequeueAt(end);
  return true;
}

void RemoveFinished(ReconcileContext& context) {
  for (const auto& [task, pod] : context.pods()) {
    if (!IsTensorboard(task) && IsCleanedUp(context, pod)) context.Remove(Kind::kPod, pod);
  }
  for (const auto& [task, service] : context.services()) {
    const Child* pod = context.PodOf(task);
    const bool cleaned =
        pod == nullptr ? context.job().clean_pod_policy() != "None" : IsCleanedUp(context, *pod);
    if (!IsTensorboard(task) && cleaned) context.Remove(Kind::kService, service);
  }
}

void CleanUp(ReconcileContext& context) {
  const absl::Time completed =
      k8s::TimeAt(context.status(), "/completionTime").value_or(absl::InfinitePast());
  RemovePodGroup(context);
  if (!MayFinish(context, completed)) RemoveFinished(context);
  EnsureTensorboard(context);
  context.CountReplicas();
  if (const auto ttl = context.job().ttl()) {
    const absl::Time end = completed + *ttl;
    if (context.now() >= end) {
      context.AddAction(DeleteJob{});
    } else {
      context.RequeueAt(end);
    }
  }
}

void Suspend(ReconcileContext& context) {
  RemovePodGroup(context);
  RemoveFormer(context);
  for (const auto& [task, pod] : context.pods()) context.Remove(Kind::kPod, pod);
  for (const auto& [task, service] : context.services()) context.Remove(Kind::kService, service);
  context.SetReplicaFailure();
  if (!IsTrue(context.status(), kSuspended)) {
    const std::string message = absl::StrCat("TFJob ", context.job().name(), " is suspended.");
    context.Set({kSuspended, true, "TFJobSuspended", message});
    context.RecordEvent(false, "TFJobSuspended", message);
  }
  context.CountReplicas();
  context.status().erase("succeeded");  // after a resume all tasks run again
}

// Returns whether the chief is running, or any worker if the job has no chief.
bool IsUp(const ReconcileContext& context) {
  const auto chief = job::ChiefTask(context.job().spec());
  if (chief && (job::IsChiefRole(chief->role) || context.job().spec().policies.chief)) {
    const Child* pod = context.PodOf(*chief);
    return pod != nullptr && pod->active();
  }
  return std::any_of(context.pods().begin(), context.pods().end(), [](const auto& slot) {
    return slot.first.role == "worker" && slot.second.active();
  });
}

void RunJob(ReconcileContext& context) {
  const std::string name = absl::StrCat("TFJob ", context.job().name());
  if (IsTrue(context.status(), kSuspended)) {
    context.Set({kSuspended, false, "TFJobResumed", absl::StrCat(name, " is resumed.")});
    context.RecordEvent(false, "TFJobResumed", absl::StrCat(name, " is resumed."));
    context.status().erase("startTime");  // the deadline starts again
  }
  if (!context.status().contains("startTime")) {
    context.status()["startTime"] = k8s::Timestamp(context.now());
  }
  context.AdoptOrphans();
  const bool over = EvaluateOutcome(context);
  context.CountReplicas();
  if (over) return;
  ReconcileReplicas(context);
  EnsureTensorboard(context);
  context.SetReplicaFailure();
  if (!context.restart_reason.empty()) {
    context.Set({kRestarting, true, "TFJobRestarting",
                 absl::StrCat(name, " is restarting: ", context.restart_reason)});
  } else if (IsUp(context)) {
    context.Set({kRunning, true, "TFJobRunning", absl::StrCat(name, " is running.")});
  }
}

// Sets the status fields that clients of v1alpha1 read.
void SetV1Alpha1Phase(ReconcileContext& context) {
  Json& status = context.status();
  if (IsFinished(status)) {
    const bool cleaning = std::any_of(
        context.pods().begin(), context.pods().end(),
        [&](const auto& s) { return !IsTensorboard(s.first) && IsCleanedUp(context, s.second); });
    status["phase"] = cleaning ? "CleanUp" : "Done";
    status["state"] = IsTrue(status, kSucceeded) ? "Succeeded" : "Failed";
  } else {
    const bool up = IsTrue(status, kRunning) || IsTrue(status, kRestarting);
    status["phase"] = up ? "Running" : "Creating";
    status["state"] = up ? "Running" : "Unknown";
  }
}

Plan Run(ReconcileContext& context) {
  if (!IsTrue(context.status(), kCreated)) {
    context.Set({kCreated, true, "TFJobCreated",
                 absl::StrCat("TFJob ", context.job().name(), " is created.")});
    WarnOfPolicies(context);
  }
  if (IsFinished(context.status())) {
    CleanUp(context);
  } else if (context.job().suspended()) {
    Suspend(context);
  } else {
    RunJob(context);
  }
  if (context.job().is_v1alpha1()) SetV1Alpha1Phase(context);
  return context.TakePlan();
}

// Returns whether the operator has created pods of the job. It then keeps managing the job,
// whatever managedBy is set to later: only the webhook enforces that the field is immutable.
bool HasPods(const Observed& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(), [&](const k8s::Object& pod) {
    return k8s::ControllerOf(*pod) == k8s::UidOf(observed.job);
  });
}

}  // namespace

absl::StatusOr<Json> Build(const TfJob& job, const Create& create) {
  if (create.kind == Kind::kPodGroup) return create.object;
  if (create.kind == Kind::kConfigMap) return job.TfServerConfig();
  if (create.kind == Kind::kService) return job.ServiceOf(create.task);
  absl::StatusOr<Json> pod = job.PodOf(create.task);
  if (pod.ok() && create.incarnation > 0) {
    (*pod)["metadata"]["annotations"][kIncarnation] = absl::StrCat(create.incarnation);
  }
  return pod;
}

Plan FailJob(const Observed& observed, const absl::Status& mistakes, absl::Time now) {
  Plan plan{.status = StatusOf(observed.job)};
  const Json before = plan.status;
  if (!IsFinished(plan.status)) {
    plan.events.push_back({true, "TFJobFailed", std::string(mistakes.message())});
  }
  SetCondition(plan.status, {kFailed, true, "FailedValidation", std::string(mistakes.message())},
               now);
  if (plan.status != before) {
    plan.status["completionTime"] = k8s::Timestamp(now);
    if (&JobKindOf(observed.job) == &kTfJobsV1Alpha1) {
      plan.status.update({{"phase", "Failed"}, {"state", "Failed"}});
    }
  }
  plan.status_changed = plan.status != before;
  return plan;
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kPod:
      return "Pod";
    case Kind::kService:
      return "Service";
    case Kind::kPodGroup:
      return "PodGroup";
    case Kind::kConfigMap:
      return "ConfigMap";
  }
  return "";
}

Plan Reconcile(const Observed& observed, const TfJobOptions& options, absl::Time now) {
  const std::string manager = k8s::TextAt(observed.job, "/spec/runPolicy/managedBy");
  const bool foreign = !manager.empty() && manager != kOwnName && !HasPods(observed);
  // The garbage collector deletes the objects of a job that is being deleted.
  if (k8s::IsBeingDeleted(observed.job) || foreign) return {.status = StatusOf(observed.job)};
  std::shared_ptr<const job::JobSpec> spec = observed.spec;
  if (spec == nullptr) {
    auto read = TfJob::ReadSpec(observed.job);
    if (!read.ok()) return FailJob(observed, read.status(), now);
    spec = std::make_shared<const job::JobSpec>(*std::move(read));
  }
  const TfJob job(observed.job, std::move(spec), options);
  if (observed.spec == nullptr) {
    if (const absl::Status good = job.CheckPods(); !good.ok()) return FailJob(observed, good, now);
  }
  ReconcileContext context(job, observed, now);
  return Run(context);
}

}  // namespace muster::controller
