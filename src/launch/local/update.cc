#include "launch/local/update.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "base/status_macros.h"
#include "launch/local/addresses.h"

namespace muster::local {
namespace {

int UsableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// ps and evaluator mostly wait for the others, so the cores are shared among those.
int ComputingTasks(const JobSpec& spec) {
  int count = 0;
  for (const RoleSpec& role : spec.roles) {
    if (!IsServiceRole(role.name)) count += role.replicas;
  }
  return std::max(1, count);
}

// Only the leader of the built-in trainer does anything else when there is an evaluator: other
// tasks are not started anew because one comes or goes.
bool HeedsEvaluators(const JobSpec& spec, const TaskId& task) {
  return spec.FindRole(task.role)->command.empty() && ChiefTask(spec) == task;
}

}  // namespace

absl::StatusOr<TaskLaunch> LaunchOf(const JobDir& dir, const Submission& submission,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts) {
  LaunchContext context{
      .job_id = submission.id,
      .working_dir = submission.working_dir,
      .trainer = submission.trainer,
      .train_config = dir.train_config(),
      .run_dir = dir.run_dir(task),
      .socket_dir = dir.sockets(),
      .attempt = attempt,
      .restart_count = restarts,
      .cpus = UsableCpus(),
      .tasks_on_host = ComputingTasks(submission.spec),
      .user_set_omp = std::getenv("OMP_NUM_THREADS") != nullptr,
      .resumed = !submission.resumed_from.empty(),
      .resume_step = submission.resume_step,
  };
  return BuildTaskLaunch(submission.spec, cluster, task, context);
}

absl::StatusOr<UpdatePlan> PlanUpdate(const JobDir& dir, const Submission& current,
                                      const ClusterSpec& cluster, const Submission& next) {
  const ClusterSpec next_cluster = PlanAddresses(next.spec, cluster);
  // Tasks are told of some policies, but not started anew because of them.
  Submission previous = current;
  previous.spec.policies = next.spec.policies;
  UpdatePlan plan;
  plan.policies_changed = current.spec.policies != next.spec.policies;
  for (const TaskId& task : next.spec.Tasks()) {
    if (!cluster.Contains(task)) {
      plan.added.push_back(task);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(TaskLaunch before, LaunchOf(dir, previous, cluster, task, 0, 0));
    MUSTER_ASSIGN_OR_RETURN(const TaskLaunch after, LaunchOf(dir, next, next_cluster, task, 0, 0));
    if (!HeedsEvaluators(next.spec, task)) {
      before.env["MUSTER_EVALUATORS"] = after.env.at("MUSTER_EVALUATORS");
    }
    const RoleSpec& old_role = *current.spec.FindRole(task.role);
    const RoleSpec& new_role = *next.spec.FindRole(task.role);
    // The trainer reads its section from a file, whose name tells nothing.
    const bool trains_anew = new_role.command.empty() && current.spec.train != next.spec.train;
    (before == after && !trains_anew ? plan.kept : plan.restarted).push_back(task);
    // Rules that the supervisor follows without a restart.
    if (old_role.restart != new_role.restart || old_role.ready != new_role.ready) {
      plan.policies_changed = true;
    }
  }
  for (const TaskId& task : current.spec.Tasks()) {
    if (!next_cluster.Contains(task)) plan.removed.push_back(task);
  }
  // Something that neither a task nor a rule depends on here, such as an image: worth keeping all
  // the same.
  if (plan.empty() && current.spec != next.spec) plan.policies_changed = true;
  return plan;
}

}  // namespace muster::local
