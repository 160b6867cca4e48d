#include "controller/rules/reconcile_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "controller/rules/create_failures.h"
#include "controller/rules/restarts.h"
#include "job/format/tfjob_format.h"

namespace muster::controller {

ReconcileContext::ReconcileContext(const TfJob& job, const Observed& observed, absl::Time now)
    : job_(job),
      now_(now),
      before_(StatusOf(observed.job)),
      pods_(Claim(job, observed.pods)),
      services_(Claim(job, observed.services)),
      pending_creations_(observed.pending_creations),
      create_failures_(observed.create_failures),
      config_maps_(observed.config_maps) {
  plan_.status = before_;
  for (const k8s::Object& group : observed.pod_groups) {
    if (k8s::NameOf(*group) == job.GroupName()) pod_group_ = group.get();
  }
  if (job.spec().policies.restart_scope != job::RestartScope::kJob || IsFinished(before_)) return;
  Retire([this](const Child& pod) {
    int incarnation = 0;
    return (absl::SimpleAtoi(pod.annotation(kIncarnation), &incarnation) ? incarnation : 0) <
           this->incarnation();
  });
}

int ReconcileContext::incarnation() const { return Replacements(plan_.status, kWholeJob); }

std::string ReconcileContext::RestartRecord(const cluster::TaskId& task) const {
  const bool whole = job_.spec().policies.restart_scope == job::RestartScope::kJob;
  return whole && RoleOf(task) != nullptr ? kWholeJob : task.ToString();
}

void ReconcileContext::RestartJob() {
  Retire([](const Child&) { return true; });
  plan_.status.erase("succeeded");
}

void ReconcileContext::Retire(const std::function<bool(const Child&)>& is_former) {
  std::erase_if(pods_.slots, [&](const auto& slot) {
    if (RoleOf(slot.first) == nullptr || !is_former(slot.second)) return false;
    former_.push_back(slot.second);
    return true;
  });
}

const Child* ReconcileContext::PodOf(const cluster::TaskId& task) const {
  const auto found = pods_.slots.find(task);
  return found == pods_.slots.end() ? nullptr : &found->second;
}

bool ReconcileContext::HasConfigMap(const std::string& name) const {
  return std::any_of(config_maps_.begin(), config_maps_.end(), [&](const k8s::Object& one) {
    return k8s::NameOf(*one) == name && k8s::ControllerOf(*one) == job_.uid() &&
           !k8s::IsBeingDeleted(*one);
  });
}

const job::RoleSpec* ReconcileContext::RoleOf(const cluster::TaskId& task) const {
  const job::RoleSpec* role = job_.spec().FindRole(task.role);
  return role != nullptr && task.index < role->replicas ? role : nullptr;
}

void ReconcileContext::RecordEvent(bool warning, std::string reason, std::string message) {
  plan_.events.push_back({warning, std::move(reason), std::move(message)});
}

void ReconcileContext::Remove(Kind kind, const Child& child, const std::string& reason) {
  if (!child.deleting()) {
    AddAction(Delete{kind, child.name(), child.uid(), /*immediately=*/false, reason});
  } else if (kind == Kind::kPod) {
    const absl::Time stuck = child.deletion_deadline() + job_.lost_after();
    if (now_ >= stuck) {
      AddAction(Delete{kind, child.name(), child.uid(), /*immediately=*/true});
    } else {
      RequeueAt(stuck);
    }
  }
}

void ReconcileContext::AdoptOrphans() {
  const auto adopt = [this](Kind kind, const Child& orphan) {
    // A strategic patch keeps owners that are not controllers.
    AddAction(Change{.kind = kind,
                     .name = orphan.name(),
                     .patch = {{"metadata",
                                {{"uid", orphan.uid()},
                                 {"ownerReferences", Json::array({job_.OwnerReference()})}}}},
                     .strategic = true});
  };
  for (const Child& orphan : pods_.orphans) adopt(Kind::kPod, orphan);
  for (const Child& orphan : services_.orphans) adopt(Kind::kService, orphan);
}

void ReconcileContext::CreateMissing(Kind kind, const cluster::TaskId& task) {
  const Claims& claims = kind == Kind::kPod ? pods_ : services_;
  if (claims.slots.contains(task) || IsCreationPending(kind, job_.NameOf(task)) ||
      !IsFree(claims, task)) {
    return;
  }
  if (!MayRetryCreate(kind, job_.NameOf(task))) return;
  const bool has_incarnation = kind == Kind::kPod && job_.spec().FindRole(task.role) != nullptr;
  AddAction(Create{.kind = kind,
                   .name = job_.NameOf(task),
                   .task = task,
                   .incarnation = has_incarnation ? incarnation() : 0});
}

bool ReconcileContext::MayRetryCreate(Kind kind, const std::string& name) {
  const auto failure = create_failures_.find({kind, name});
  if (failure == create_failures_.end()) return true;
  missing_.insert(*failure);
  if (now_ >= failure->second.next) return true;
  RequeueAt(failure->second.next);
  return false;
}

void ReconcileContext::SetReplicaFailure() {
  if (!missing_.empty()) {
    const Kind kind = missing_.begin()->first.first;
    Set({kReplicaFailure, true, absl::StrCat("FailedCreate", KindName(kind)), Describe(missing_)});
    return;
  }
  // An operator that has just started has no failures recorded, though its predecessor set the
  // condition. It keeps the condition until it has tried to create the objects itself.
  const bool tries = std::any_of(plan_.actions.begin(), plan_.actions.end(), [](const auto& one) {
    return std::holds_alternative<Create>(one);
  });
  if (!tries) RemoveCondition(plan_.status, kReplicaFailure);
}

// Returns whether the name of the task's object is free. An orphan is adopted; an object of another
// owner is in the way.
bool ReconcileContext::IsFree(const Claims& claims, const cluster::TaskId& task) {
  const std::string name = job_.NameOf(task);
  const auto has_name = [&](const Child& child) { return child.name() == name; };
  if (std::any_of(claims.foreign.begin(), claims.foreign.end(), has_name)) {
    RecordEvent(
        true, "FailedCreate",
        absl::StrCat(name,
                     " already exists and belongs to another owner; delete or rename one of them"));
    return false;
  }
  return std::none_of(claims.orphans.begin(), claims.orphans.end(), has_name);
}

bool ReconcileContext::HasSucceeded(const cluster::TaskId& task) {
  const Child* pod = PodOf(task);
  Json& done = plan_.status["succeeded"];
  if (!done.is_array()) done = Json::array();
  const std::string name = task.ToString();
  bool found = std::find(done.begin(), done.end(), name) != done.end();
  if (!found && pod != nullptr && pod->succeeded()) {
    done.push_back(name);
    found = true;
  }
  if (done.empty()) plan_.status.erase("succeeded");
  return found;
}

bool ReconcileContext::IsUp(const cluster::TaskId& task) const {
  const Child* pod = PodOf(task);
  const job::RoleSpec* role = RoleOf(task);
  if (pod == nullptr || role == nullptr || !pod->active()) return false;
  const Json* containers = k8s::Find(role->pod, "/spec/containers");
  const bool probed = containers != nullptr &&
                      std::any_of(containers->begin(), containers->end(), [](const Json& one) {
                        return k8s::Find(one, "/readinessProbe") != nullptr;
                      });
  return !probed || pod->ready();
}

bool ReconcileContext::Finish(const char* type, std::string reason, std::string message) {
  const bool failed = type == kFailed;
  RemoveCondition(plan_.status, kReplicaFailure);
  RecordEvent(failed, failed ? "TFJobFailed" : "TFJobSucceeded", message);
  Set({type, true, std::move(reason), std::move(message)});
  plan_.status["completionTime"] = k8s::Timestamp(now_);
  plan_.actions.clear();
  return true;
}

void ReconcileContext::CountReplicas() {
  Json counts = Json::object();
  const bool finished = IsFinished(before_);
  for (const job::RoleSpec* role : job_.roles()) {
    int active = 0, succeeded = 0, failed = 0;
    for (int i = 0; i < role->replicas; ++i) {
      const cluster::TaskId task{role->name, i};
      if (HasSucceeded(task)) ++succeeded;
      const Child* pod = PodOf(task);
      if (pod == nullptr) continue;
      if (pod->active()) ++active;
      if (pod->failed()) ++failed;
    }
    const std::string name = job::TfJobRoleName(role->name);
    if (finished) {
      // A failed pod stays counted after it was cleaned up.
      const std::string path = absl::StrCat("/replicaStatuses/", name, "/failed");
      failed = std::max(failed, k8s::NumberAt(before_, path).value_or(0));
    }
    counts[name] = {{"active", active}, {"succeeded", succeeded}, {"failed", failed}};
  }
  plan_.status["replicaStatuses"] = std::move(counts);
}

Plan ReconcileContext::TakePlan() {
  plan_.status_changed = plan_.status != before_;
  return std::move(plan_);
}

}  // namespace muster::controller
