#include "controller/rules/replicas.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/rules/gang.h"
#include "controller/rules/outcome.h"
#include "controller/rules/restarts.h"
#include "manifest/tf_server.h"

namespace muster::controller {
namespace {

void RemoveUnwanted(ReconcileContext& context, const job::RoleSpec& role) {
  for (const auto& [task, pod] : context.pods()) {
    if (task.role != role.name) continue;
    if (task.index >= role.replicas || pod.deleting() || IsReplaced(context, role, task, pod)) {
      context.Remove(Kind::kPod, pod);
    }
  }
  for (const auto& [task, service] : context.services()) {
    if (task.role == role.name && task.index >= role.replicas) {
      context.Remove(Kind::kService, service);
    }
  }
}

// Returns whether the pod of a task may be created now. Pods that are lost in a row are delayed.
bool MayReplace(ReconcileContext& context, const cluster::TaskId& task) {
  if (context.PodOf(task) != nullptr) return true;
  const absl::Time next = NextReplacement(context.status(), context.RestartRecord(task));
  if (context.now() >= next) return true;
  context.RequeueAt(next);
  return false;
}

void CreateMissingReplicas(ReconcileContext& context, const job::RoleSpec& role, bool may_start) {
  for (int i = 0; i < role.replicas; ++i) {
    const cluster::TaskId task{role.name, i};
    context.CreateMissing(Kind::kService, task);
    if (may_start && !context.HasSucceeded(task) && MayReplace(context, task)) {
      context.CreateMissing(Kind::kPod, task);
    }
  }
}

// Returns whether all pods of the earlier roles in the start order run.
bool MayStart(ReconcileContext& context, const job::RoleSpec& role) {
  const std::vector<std::string> order = context.job().start_order();
  const auto own = std::find(order.begin(), order.end(), role.name);
  if (own == order.end()) return true;
  return std::all_of(order.begin(), own, [&](const std::string& earlier) {
    for (int i = 0; i < context.job().spec().FindRole(earlier)->replicas; ++i) {
      const cluster::TaskId task{earlier, i};
      if (!context.IsUp(task) && !context.HasSucceeded(task)) return false;
    }
    return true;
  });
}

bool IsOutdated(const Child& pod, const std::string& current) {
  const std::string hash = pod.annotation(kTemplateHash);
  return !hash.empty() && hash != current;
}

// Returns the tasks whose pods are to be replaced now because their templates have changed.
std::vector<cluster::TaskId> OutdatedTasks(ReconcileContext& context) {
  const bool rolling = context.job().update_policy() == UpdatePolicy::kRolling;
  std::vector<cluster::TaskId> outdated;
  for (const job::RoleSpec* role : context.job().roles()) {
    const std::string current = context.job().TemplateHash(*role);
    for (int i = 0; i < role->replicas; ++i) {
      const cluster::TaskId task{role->name, i};
      if (context.HasSucceeded(task)) continue;
      const Child* pod = context.PodOf(task);
      const bool stays =
          pod != nullptr && !pod->deleting() && !IsReplaced(context, *role, task, *pod);
      if (stays && IsOutdated(*pod, current)) {
        outdated.push_back(task);
      } else if (rolling && !context.IsUp(task)) {
        return {};  // the pod that was replaced last does not run yet
      }
    }
  }
  if (!rolling || outdated.size() < 2) return outdated;
  // A rolling update replaces one pod at a time, first one that does not run.
  const auto idle = std::find_if(outdated.begin(), outdated.end(),
                                 [&](const cluster::TaskId& task) { return !context.IsUp(task); });
  return {idle == outdated.end() ? outdated.front() : *idle};
}

void ReplaceOutdated(ReconcileContext& context) {
  if (context.job().update_policy() == UpdatePolicy::kNever) return;
  for (const cluster::TaskId& task : OutdatedTasks(context)) {
    context.Remove(Kind::kPod, *context.PodOf(task), "its template has changed");
  }
}

// Creates the ConfigMap that the pods of a default PS mount. They wait for it.
void EnsureTfServer(ReconcileContext& context) {
  const job::JobSpec& spec = context.job().spec();
  if (!manifest::MountsTfServer(spec)) return;
  const std::string name = manifest::TfServerName(spec);
  if (context.HasConfigMap(name) || context.IsCreationPending(Kind::kConfigMap, name) ||
      !context.MayRetryCreate(Kind::kConfigMap, name)) {
    return;
  }
  context.AddAction(Create{.kind = Kind::kConfigMap, .name = name});
}

}  // namespace

void RemoveFormer(ReconcileContext& context) {
  for (const Child& pod : context.former())
    context.Remove(Kind::kPod, pod, "the whole job restarts");
}

void ReconcileReplicas(ReconcileContext& context) {
  EnsureTfServer(context);
  RemoveFormer(context);
  ReplaceOutdated(context);
  const bool together = EnsurePodGroup(context) && context.former().empty();
  for (const job::RoleSpec* role : context.job().roles()) {
    RemoveUnwanted(context, *role);
    CreateMissingReplicas(context, *role, together && MayStart(context, *role));
  }
}

bool IsTensorboard(const cluster::TaskId& task) { return task.role == kTensorboard; }

void EnsureTensorboard(ReconcileContext& context) {
  const cluster::TaskId task{kTensorboard, 0};
  const TfJob& job = context.job();
  const bool wanted = job.tensorboard() != nullptr;
  if (const Child* pod = context.PodOf(task)) {
    const bool over = pod->phase() == Phase::kFailed || pod->phase() == Phase::kSucceeded;
    if (over && wanted && !pod->deleting()) {
      RecordLoss(context.status(), context.RestartRecord(task), pod->uid(), context.now());
    }
    if (over || !wanted || pod->deleting()) context.Remove(Kind::kPod, *pod);
  }
  if (wanted) {
    context.CreateMissing(Kind::kService, task);
    if (MayReplace(context, task)) context.CreateMissing(Kind::kPod, task);
  } else if (const auto service = context.services().find(task);
             service != context.services().end()) {
    context.Remove(Kind::kService, service->second);
  }
}

}  // namespace muster::controller
