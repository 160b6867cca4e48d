#include "controller/pass.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "controller/refusals.h"
#include "controller/restarts.h"
#include "job/tfjob_format.h"

namespace muster::controller {

Pass::Pass(const TfJob& job, const Observed& observed, absl::Time now)
    : job_(job),
      now_(now),
      before_(StatusOf(observed.job)),
      pods_(Claim(job, observed.pods)),
      services_(Claim(job, observed.services)),
      under_way_(observed.under_way),
      refused_(observed.refused) {
  plan_.status = before_;
  for (const k8s::Object& group : observed.pod_groups) {
    if (k8s::NameOf(*group) == job.GroupName()) pod_group_ = group.get();
  }
  if (job.spec().policies.restart_scope != RestartScope::kJob || IsFinished(before_)) return;
  Retire([this](const Child& pod) {
    int life = 0;
    return (absl::SimpleAtoi(pod.annotation(kLife), &life) ? life : 0) < this->life();
  });
}

int Pass::life() const { return Replacements(plan_.status, kWholeJob); }

std::string Pass::RestartRecord(const TaskId& task) const {
  const bool whole = job_.spec().policies.restart_scope == RestartScope::kJob;
  return whole && RoleOf(task) != nullptr ? kWholeJob : task.ToString();
}

void Pass::BeginAnew() {
  Retire([](const Child&) { return true; });
  plan_.status.erase("succeeded");
}

void Pass::Retire(const std::function<bool(const Child&)>& is_former) {
  std::erase_if(pods_.slots, [&](const auto& slot) {
    if (RoleOf(slot.first) == nullptr || !is_former(slot.second)) return false;
    former_.push_back(slot.second);
    return true;
  });
}

const Child* Pass::PodOf(const TaskId& task) const {
  const auto found = pods_.slots.find(task);
  return found == pods_.slots.end() ? nullptr : &found->second;
}

const RoleSpec* Pass::RoleOf(const TaskId& task) const {
  const RoleSpec* role = job_.spec().FindRole(task.role);
  return role != nullptr && task.index < role->replicas ? role : nullptr;
}

void Pass::Tell(bool warning, std::string reason, std::string message) {
  plan_.events.push_back({warning, std::move(reason), std::move(message)});
}

void Pass::Remove(Kind kind, const Child& child, const std::string& why) {
  if (!child.deleting()) {
    Do(Delete{kind, child.name(), child.uid(), /*at_once=*/false, why});
  } else if (kind == Kind::kPod) {
    const absl::Time stuck = child.gone_by() + job_.lost_after();
    if (now_ >= stuck) {
      Do(Delete{kind, child.name(), child.uid(), /*at_once=*/true});
    } else {
      Wake(stuck);
    }
  }
}

void Pass::AdoptOrphans() {
  const auto adopt = [this](Kind kind, const Child& orphan) {
    // Beside owners that do not control it, which stay.
    Do(Change{.kind = kind,
              .name = orphan.name(),
              .patch = {{"metadata",
                         {{"uid", orphan.uid()},
                          {"ownerReferences", Json::array({job_.OwnerReference()})}}}},
              .strategic = true});
  };
  for (const Child& orphan : pods_.orphans) adopt(Kind::kPod, orphan);
  for (const Child& orphan : services_.orphans) adopt(Kind::kService, orphan);
}

void Pass::Make(Kind kind, const TaskId& task) {
  const Claims& claims = kind == Kind::kPod ? pods_ : services_;
  if (claims.slots.contains(task) || IsUnderWay(kind, job_.NameOf(task)) || !IsFree(claims, task)) {
    return;
  }
  if (!MayTry(kind, job_.NameOf(task))) return;
  const bool lives = kind == Kind::kPod && job_.spec().FindRole(task.role) != nullptr;
  Do(Create{.kind = kind, .name = job_.NameOf(task), .task = task, .life = lives ? life() : 0});
}

bool Pass::MayTry(Kind kind, const std::string& name) {
  const auto refused = refused_.find({kind, name});
  if (refused == refused_.end()) return true;
  missing_.insert(*refused);
  if (now_ >= refused->second.next) return true;
  Wake(refused->second.next);
  return false;
}

void Pass::SetReplicaFailure() {
  if (!missing_.empty()) {
    const Kind kind = missing_.begin()->first.first;
    Set({kReplicaFailure, true, absl::StrCat("FailedCreate", WordOf(kind)), Describe(missing_)});
    return;
  }
  // An operator that has just started has not tried yet what another was refused.
  const bool tries = std::any_of(plan_.actions.begin(), plan_.actions.end(), [](const auto& one) {
    return std::holds_alternative<Create>(one);
  });
  if (!tries) RemoveCondition(plan_.status, kReplicaFailure);
}

// Whether the name of a task is: an orphan is adopted, what another owns is in the way.
bool Pass::IsFree(const Claims& claims, const TaskId& task) {
  const std::string name = job_.NameOf(task);
  const auto has_name = [&](const Child& child) { return child.name() == name; };
  if (std::any_of(claims.foreign.begin(), claims.foreign.end(), has_name)) {
    Tell(true, "FailedCreate",
         absl::StrCat(name, " is there already and belongs to another; delete or rename one"));
    return false;
  }
  return std::none_of(claims.orphans.begin(), claims.orphans.end(), has_name);
}

bool Pass::HasSucceeded(const TaskId& task) {
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

bool Pass::IsUp(const TaskId& task) const {
  const Child* pod = PodOf(task);
  const RoleSpec* role = RoleOf(task);
  if (pod == nullptr || role == nullptr || !pod->active()) return false;
  const Json* containers = k8s::Find(role->pod, "/spec/containers");
  const bool probed = containers != nullptr &&
                      std::any_of(containers->begin(), containers->end(), [](const Json& one) {
                        return k8s::Find(one, "/readinessProbe") != nullptr;
                      });
  return !probed || pod->ready();
}

bool Pass::Finish(const char* type, std::string reason, std::string message) {
  const bool failed = type == kFailed;
  RemoveCondition(plan_.status, kReplicaFailure);
  Tell(failed, failed ? "TFJobFailed" : "TFJobSucceeded", message);
  Set({type, true, std::move(reason), std::move(message)});
  plan_.status["completionTime"] = k8s::Timestamp(now_);
  plan_.actions.clear();
  return true;
}

void Pass::Count() {
  Json counts = Json::object();
  const bool finished = IsFinished(before_);
  for (const RoleSpec* role : job_.roles()) {
    int active = 0, succeeded = 0, failed = 0;
    for (int i = 0; i < role->replicas; ++i) {
      const TaskId task{role->name, i};
      if (HasSucceeded(task)) ++succeeded;
      const Child* pod = PodOf(task);
      if (pod == nullptr) continue;
      if (pod->active()) ++active;
      if (pod->failed()) ++failed;
    }
    const std::string name = TfJobRoleName(role->name);
    if (finished) {
      // A pod that has failed is counted also when it was cleaned up.
      const std::string path = absl::StrCat("/replicaStatuses/", name, "/failed");
      failed = std::max(failed, k8s::NumberAt(before_, path).value_or(0));
    }
    counts[name] = {{"active", active}, {"succeeded", succeeded}, {"failed", failed}};
  }
  plan_.status["replicaStatuses"] = std::move(counts);
}

Plan Pass::Take() {
  plan_.status_changed = plan_.status != before_;
  return std::move(plan_);
}

}  // namespace muster::controller
