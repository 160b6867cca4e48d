#include "supervise/update.h"

#include "base/status_macros.h"

namespace muster {
namespace {

// Returns true for the chief of the built-in trainer, the only task whose work depends on
// evaluators. Other tasks do not restart when an evaluator is added or removed.
bool HeedsEvaluators(const JobSpec& spec, const TaskId& task) {
  return spec.FindRole(task.role)->command.empty() && ChiefTask(spec) == task;
}

}  // namespace

absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current, const ClusterSpec& cluster,
                                      const Submission& next, const ClusterSpec& next_cluster,
                                      const LaunchFunction& launch_of) {
  // Some policies are part of a launch. Equal policies keep them from causing a restart.
  Submission previous = current;
  previous.spec.policies = next.spec.policies;
  UpdatePlan plan;
  plan.policies_changed = current.spec.policies != next.spec.policies;
  for (const TaskId& task : next.spec.Tasks()) {
    if (!cluster.Contains(task)) {
      plan.added.push_back(task);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(TaskLaunch before, launch_of(previous, cluster, task));
    MUSTER_ASSIGN_OR_RETURN(const TaskLaunch after, launch_of(next, next_cluster, task));
    if (!HeedsEvaluators(next.spec, task)) {
      before.env["MUSTER_EVALUATORS"] = after.env.at("MUSTER_EVALUATORS");
    }
    const RoleSpec& old_role = *current.spec.FindRole(task.role);
    const RoleSpec& new_role = *next.spec.FindRole(task.role);
    // A launch contains the path of the train section, not its content.
    const bool trains_anew = new_role.command.empty() && current.spec.train != next.spec.train;
    (before == after && !trains_anew ? plan.kept : plan.restarted).push_back(task);
    // The supervisor applies these rules without a restart.
    if (old_role.restart != new_role.restart || old_role.ready != new_role.ready) {
      plan.policies_changed = true;
    }
  }
  for (const TaskId& task : current.spec.Tasks()) {
    if (!next_cluster.Contains(task)) plan.removed.push_back(task);
  }
  // Other differences, such as an image, affect neither tasks nor rules here, but the new
  // description must still be stored.
  if (plan.empty() && current.spec != next.spec) plan.policies_changed = true;
  return plan;
}

}  // namespace muster
