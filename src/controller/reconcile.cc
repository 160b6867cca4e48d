#include "controller/reconcile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/gang.h"
#include "controller/pass.h"
#include "controller/replicas.h"
#include "controller/verdict.h"
#include "job/tfjob_format.h"

namespace muster::controller {
namespace {

constexpr char kOwnName[] = "kubeflow.org/training-operator";

// What a template says of restarts has no effect, which its author may not know.
void WarnOfPolicies(Pass& pass) {
  if (pass.job().is_v1alpha1()) return;  // its templates all had one
  for (const RoleSpec* role : pass.job().roles()) {
    const std::string policy = k8s::TextAt(role->pod, "/spec/restartPolicy");
    if (policy.empty()) continue;
    pass.Tell(
        true, "SetPodTemplateRestartPolicy",
        absl::StrCat("Restart policy ", policy, " in the pod template of ",
                     TfJobRoleName(role->name), " is overwritten by that of its replica spec"));
  }
}

bool IsAtWork(const Child& pod) {
  return pod.phase() == Phase::kRunning || pod.phase() == Phase::kPending;
}

// Whether the pod of a job that is over goes, as the user wants it.
bool Goes(const Pass& pass, const Child& pod) {
  const std::string policy = pass.job().clean_pod_policy();
  return policy == "All" || (policy == "Running" && IsAtWork(pod));
}

// Whether tasks of a job that has succeeded may still end by themselves, at the same addresses.
bool MayFinish(Pass& pass, absl::Time completed) {
  const absl::Time end = completed + pass.job().finish_grace();
  const bool any = std::any_of(pass.pods().begin(), pass.pods().end(), [](const auto& slot) {
    return !IsTensorboard(slot.first) && IsAtWork(slot.second);
  });
  if (!any || !IsTrue(pass.status(), kSucceeded) || pass.now() >= end) return false;
  pass.Wake(end);
  return true;
}

void RemoveWhatIsOver(Pass& pass) {
  for (const auto& [task, pod] : pass.pods()) {
    if (!IsTensorboard(task) && Goes(pass, pod)) pass.Remove(Kind::kPod, pod);
  }
  for (const auto& [task, service] : pass.services()) {
    const Child* pod = pass.PodOf(task);
    const bool goes = pod == nullptr ? pass.job().clean_pod_policy() != "None" : Goes(pass, *pod);
    if (!IsTensorboard(task) && goes) pass.Remove(Kind::kService, service);
  }
}

void CleanUp(Pass& pass) {
  const absl::Time completed =
      k8s::TimeAt(pass.status(), "/completionTime").value_or(absl::InfinitePast());
  RemoveGang(pass);
  if (!MayFinish(pass, completed)) RemoveWhatIsOver(pass);
  KeepTensorboard(pass);
  pass.Count();
  if (const auto ttl = pass.job().ttl()) {
    const absl::Time end = completed + *ttl;
    if (pass.now() >= end) {
      pass.Do(DeleteJob{});
    } else {
      pass.Wake(end);
    }
  }
}

void Suspend(Pass& pass) {
  RemoveGang(pass);
  RemoveFormer(pass);
  for (const auto& [task, pod] : pass.pods()) pass.Remove(Kind::kPod, pod);
  for (const auto& [task, service] : pass.services()) pass.Remove(Kind::kService, service);
  pass.SetReplicaFailure();
  if (!IsTrue(pass.status(), kSuspended)) {
    const std::string message = absl::StrCat("TFJob ", pass.job().name(), " is suspended.");
    pass.Set({kSuspended, true, "TFJobSuspended", message});
    pass.Tell(false, "TFJobSuspended", message);
  }
  pass.Count();
  pass.status().erase("succeeded");  // once resumed, all begin anew
}

// The chief is at work; without one, a worker.
bool IsUp(const Pass& pass) {
  const auto chief = ChiefTask(pass.job().spec());
  if (chief && (IsChiefRole(chief->role) || pass.job().spec().policies.chief)) {
    const Child* pod = pass.PodOf(*chief);
    return pod != nullptr && pod->active();
  }
  return std::any_of(pass.pods().begin(), pass.pods().end(), [](const auto& slot) {
    return slot.first.role == "worker" && slot.second.active();
  });
}

void Work(Pass& pass) {
  const std::string name = absl::StrCat("TFJob ", pass.job().name());
  if (IsTrue(pass.status(), kSuspended)) {
    pass.Set({kSuspended, false, "TFJobResumed", absl::StrCat(name, " is resumed.")});
    pass.Tell(false, "TFJobResumed", absl::StrCat(name, " is resumed."));
    pass.status().erase("startTime");  // its deadline counts anew
  }
  if (!pass.status().contains("startTime")) {
    pass.status()["startTime"] = k8s::Timestamp(pass.now());
  }
  pass.AdoptOrphans();
  const bool over = Judge(pass);
  pass.Count();
  if (over) return;
  FillRoles(pass);
  KeepTensorboard(pass);
  pass.SetReplicaFailure();
  if (!pass.restarted.empty()) {
    pass.Set({kRestarting, true, "TFJobRestarting",
              absl::StrCat(name, " is restarting: ", pass.restarted)});
  } else if (IsUp(pass)) {
    pass.Set({kRunning, true, "TFJobRunning", absl::StrCat(name, " is running.")});
  }
}

// What scripts of v1alpha1's time look for.
void SetOldPhase(Pass& pass) {
  Json& status = pass.status();
  if (IsFinished(status)) {
    const bool cleaning = std::any_of(pass.pods().begin(), pass.pods().end(), [&](const auto& s) {
      return !IsTensorboard(s.first) && Goes(pass, s.second);
    });
    status["phase"] = cleaning ? "CleanUp" : "Done";
    status["state"] = IsTrue(status, kSucceeded) ? "Succeeded" : "Failed";
  } else {
    const bool up = IsTrue(status, kRunning) || IsTrue(status, kRestarting);
    status["phase"] = up ? "Running" : "Creating";
    status["state"] = up ? "Running" : "Unknown";
  }
}

Plan Run(Pass& pass) {
  if (!IsTrue(pass.status(), kCreated)) {
    pass.Set({kCreated, true, "TFJobCreated",
              absl::StrCat("TFJob ", pass.job().name(), " is created.")});
    WarnOfPolicies(pass);
  }
  if (IsFinished(pass.status())) {
    CleanUp(pass);
  } else if (pass.job().suspended()) {
    Suspend(pass);
  } else {
    Work(pass);
  }
  if (pass.job().is_v1alpha1()) SetOldPhase(pass);
  return pass.Take();
}

// managedBy is immutable, which only the webhook enforces: an operator that has created pods of a
// job keeps running it.
bool HasPods(const Observed& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(), [&](const k8s::Object& pod) {
    return k8s::ControllerOf(*pod) == k8s::UidOf(observed.job);
  });
}

}  // namespace

absl::StatusOr<Json> Build(const TfJob& job, const Create& create) {
  if (create.kind == Kind::kPodGroup) return create.object;
  if (create.kind == Kind::kService) return job.ServiceOf(create.task);
  absl::StatusOr<Json> pod = job.PodOf(create.task);
  if (pod.ok() && create.life > 0) {
    (*pod)["metadata"]["annotations"][kLife] = absl::StrCat(create.life);
  }
  return pod;
}

Plan Refuse(const Observed& observed, const absl::Status& mistakes, absl::Time now) {
  Plan plan{.status = StatusOf(observed.job)};
  const Json before = plan.status;
  if (!IsFinished(plan.status)) {
    plan.events.push_back({true, "TFJobFailed", std::string(mistakes.message())});
  }
  SetCondition(plan.status, {kFailed, true, "FailedValidation", std::string(mistakes.message())},
               now);
  if (plan.status != before) {
    plan.status["completionTime"] = k8s::Timestamp(now);
    if (&JobKindOf(observed.job) == &kOldTfJobs) {
      plan.status.update({{"phase", "Failed"}, {"state", "Failed"}});
    }
  }
  plan.status_changed = plan.status != before;
  return plan;
}

const char* WordOf(Kind kind) {
  return kind == Kind::kPod ? "Pod" : kind == Kind::kService ? "Service" : "PodGroup";
}

Plan Reconcile(const Observed& observed, const TfJobOptions& options, absl::Time now) {
  const std::string manager = k8s::TextAt(observed.job, "/spec/runPolicy/managedBy");
  const bool others = !manager.empty() && manager != kOwnName && !HasPods(observed);
  // What is going takes what it owns along.
  if (k8s::IsBeingDeleted(observed.job) || others) return {.status = StatusOf(observed.job)};
  std::shared_ptr<const JobSpec> spec = observed.spec;
  if (spec == nullptr) {
    auto read = TfJob::ReadSpec(observed.job);
    if (!read.ok()) return Refuse(observed, read.status(), now);
    spec = std::make_shared<const JobSpec>(*std::move(read));
  }
  const TfJob job(observed.job, std::move(spec), options);
  if (observed.spec == nullptr) {
    if (const absl::Status good = job.CheckPods(); !good.ok()) return Refuse(observed, good, now);
  }
  Pass pass(job, observed, now);
  return Run(pass);
}

}  // namespace muster::controller
