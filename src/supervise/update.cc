#include "supervise/update.h"

#include "base/status_macros.h"

namespace muster::supervise {
namespace {

// Returns true for the chief of the built-in trainer, the only task whose work depends on
// evaluators. Other tasks do not restart when an evaluator is added or removed.
bool DependsOnEvaluators(const job::JobSpec& spec, const cluster::TaskId& task) {
  return spec.FindRole(task.role)->command.empty() && job::ChiefTask(spec) == task;
}

// Returns true if files that the role's tasks use have changed. An unknown version counts as equal.
bool FilesChanged(const job::Submission& current, const job::Submission& next,
                  const job::RoleSpec& role) {
  const bool is_trainer = role.command.empty();
  const std::string& before = is_trainer ? current.version.train : current.version.program;
  const std::string& after = is_trainer ? next.version.train : next.version.program;
  return !before.empty() && !after.empty() && before != after;
}

}  // namespace

absl::StatusOr<UpdatePlan> PlanUpdate(const job::Submission& current,
                                      const cluster::ClusterSpec& cluster,
                                      const job::Submission& next,
                                      const cluster::ClusterSpec& next_cluster,
                                      const LaunchFunction& launch_of) {
  // Some policies are part of a launch. Equal policies keep them from causing a restart.
  job::Submission previous = current;
  previous.spec.policies = next.spec.policies;
  UpdatePlan plan;
  plan.policies_changed = current.spec.policies != next.spec.policies;
  for (const cluster::TaskId& task : next.spec.Tasks()) {
    if (!cluster.Contains(task)) {
      plan.added.push_back(task);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(job::TaskLaunch before, launch_of(previous, cluster, task));
    MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch after, launch_of(next, next_cluster, task));
    if (!DependsOnEvaluators(next.spec, task)) {
      before.env["MUSTER_EVALUATORS"] = after.env.at("MUSTER_EVALUATORS");
    }
    const job::RoleSpec& old_role = *current.spec.FindRole(task.role);
    const job::RoleSpec& new_role = *next.spec.FindRole(task.role);
    // A launch contains the path of the train section, not its content.
    const bool train_section_changed =
        new_role.command.empty() && current.spec.train != next.spec.train;
    const bool restarts = before != after || train_section_changed ||
                          current.generation != next.generation ||
                          FilesChanged(current, next, new_role);
    (restarts ? plan.restarted : plan.kept).push_back(task);
    // The supervisor applies these rules without a restart.
    if (old_role.restart != new_role.restart || old_role.ready != new_role.ready) {
      plan.policies_changed = true;
    }
  }
  for (const cluster::TaskId& task : current.spec.Tasks()) {
    if (!next_cluster.Contains(task)) plan.removed.push_back(task);
  }
  // Other differences, such as an image, affect neither tasks nor rules here, but the new
  // description must still be stored.
  if (plan.empty() && current.spec != next.spec) plan.policies_changed = true;
  return plan;
}

}  // namespace muster::supervise
