#include "controller/replicas.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/gang.h"
#include "controller/restarts.h"
#include "controller/verdict.h"

namespace muster::controller {
namespace {

void RemoveUnwanted(Pass& pass, const RoleSpec& role) {
  for (const auto& [task, pod] : pass.pods()) {
    if (task.role != role.name) continue;
    if (task.index >= role.replicas || pod.deleting() || IsReplaced(pass, role, task, pod)) {
      pass.Remove(Kind::kPod, pod);
    }
  }
  for (const auto& [task, service] : pass.services()) {
    if (task.role == role.name && task.index >= role.replicas) {
      pass.Remove(Kind::kService, service);
    }
  }
}

// Whether the pod of a task may be made: those that are lost in a row are delayed.
bool MayReplace(Pass& pass, const TaskId& task) {
  if (pass.PodOf(task) != nullptr) return true;
  const absl::Time next = NextReplacement(pass.status(), pass.RestartRecord(task));
  if (pass.now() >= next) return true;
  pass.Wake(next);
  return false;
}

void MakeMissing(Pass& pass, const RoleSpec& role, bool may_start) {
  for (int i = 0; i < role.replicas; ++i) {
    const TaskId task{role.name, i};
    pass.Make(Kind::kService, task);
    if (may_start && !pass.HasSucceeded(task) && MayReplace(pass, task)) {
      pass.Make(Kind::kPod, task);
    }
  }
}

// Whether all pods of the roles before this one in the start order run.
bool MayStart(Pass& pass, const RoleSpec& role) {
  const std::vector<std::string> order = pass.job().start_order();
  const auto own = std::find(order.begin(), order.end(), role.name);
  if (own == order.end()) return true;
  return std::all_of(order.begin(), own, [&](const std::string& earlier) {
    for (int i = 0; i < pass.job().spec().FindRole(earlier)->replicas; ++i) {
      const TaskId task{earlier, i};
      if (!pass.IsUp(task) && !pass.HasSucceeded(task)) return false;
    }
    return true;
  });
}

bool IsOutdated(const Child& pod, const std::string& current) {
  const std::string hash = pod.annotation(kTemplateHash);
  return !hash.empty() && hash != current;
}

// The tasks whose pods are to be replaced now, because their templates have changed.
std::vector<TaskId> OutdatedTasks(Pass& pass) {
  const bool rolling = pass.job().update_policy() == UpdatePolicy::kRolling;
  std::vector<TaskId> outdated;
  for (const RoleSpec* role : pass.job().roles()) {
    const std::string current = pass.job().TemplateHash(*role);
    for (int i = 0; i < role->replicas; ++i) {
      const TaskId task{role->name, i};
      if (pass.HasSucceeded(task)) continue;
      const Child* pod = pass.PodOf(task);
      const bool stays = pod != nullptr && !pod->deleting() && !IsReplaced(pass, *role, task, *pod);
      if (stays && IsOutdated(*pod, current)) {
        outdated.push_back(task);
      } else if (rolling && !pass.IsUp(task)) {
        return {};  // first the last one that was replaced must run again
      }
    }
  }
  if (!rolling || outdated.size() < 2) return outdated;
  // One that does not run anyway goes first.
  const auto idle = std::find_if(outdated.begin(), outdated.end(),
                                 [&](const TaskId& task) { return !pass.IsUp(task); });
  return {idle == outdated.end() ? outdated.front() : *idle};
}

void ReplaceOutdated(Pass& pass) {
  if (pass.job().update_policy() == UpdatePolicy::kNever) return;
  for (const TaskId& task : OutdatedTasks(pass)) {
    pass.Remove(Kind::kPod, *pass.PodOf(task), "its template has changed");
  }
}

}  // namespace

void RemoveFormer(Pass& pass) {
  for (const Child& pod : pass.former()) pass.Remove(Kind::kPod, pod, "the whole job restarts");
}

void FillRoles(Pass& pass) {
  RemoveFormer(pass);
  ReplaceOutdated(pass);
  const bool together = KeepGang(pass) && pass.former().empty();
  for (const RoleSpec* role : pass.job().roles()) {
    RemoveUnwanted(pass, *role);
    MakeMissing(pass, *role, together && MayStart(pass, *role));
  }
}

bool IsTensorboard(const TaskId& task) { return task.role == kTensorboard; }

void KeepTensorboard(Pass& pass) {
  const TaskId task{kTensorboard, 0};
  const TfJob& job = pass.job();
  const bool wanted = job.tensorboard() != nullptr;
  if (const Child* pod = pass.PodOf(task)) {
    const bool over = pod->phase() == Phase::kFailed || pod->phase() == Phase::kSucceeded;
    if (over && wanted && !pod->deleting()) {
      RecordLoss(pass.status(), pass.RestartRecord(task), pod->uid(), pass.now());
    }
    if (over || !wanted || pod->deleting()) pass.Remove(Kind::kPod, *pod);
  }
  if (wanted) {
    pass.Make(Kind::kService, task);
    if (MayReplace(pass, task)) pass.Make(Kind::kPod, task);
  } else if (const auto service = pass.services().find(task); service != pass.services().end()) {
    pass.Remove(Kind::kService, service->second);
  }
}

}  // namespace muster::controller
