#include "platform/local/launch.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "platform/local/addresses.h"
#include "supervise/update.h"

namespace muster::local {
namespace {

// Tasks of ps and evaluator roles are mostly idle, so the cores are shared among the other tasks.
int ComputingTasks(const job::JobSpec& spec) {
  int count = 0;
  for (const job::RoleSpec& role : spec.roles) {
    if (!job::IsServiceRole(role.name)) count += role.replicas;
  }
  return std::max(1, count);
}

}  // namespace

int UsableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

absl::StatusOr<job::TaskLaunch> LaunchOf(const supervise::JobDir& dir,
                                         const job::Submission& submission,
                                         const cluster::ClusterSpec& cluster,
                                         const cluster::TaskId& task, int attempt, int restarts) {
  job::LaunchContext context{
      .job_id = submission.id,
      .working_dir = submission.working_dir,
      .trainer = submission.trainer,
      .tf_server = dir.tf_server(),
      .train_config = dir.train_config(),
      .run_dir = dir.run_dir(task),
      .metrics_file = dir.metrics(task),
      .socket_dir = dir.sockets(),
      .attempt = attempt,
      .restart_count = restarts,
      .cpus = UsableCpus(),
      .tasks_on_host = ComputingTasks(submission.spec),
      .user_set_omp = std::getenv("OMP_NUM_THREADS") != nullptr,
      .resumed = !submission.resumed_from.empty(),
      .resume_step = submission.resume_step,
  };
  return job::BuildTaskLaunch(submission.spec, cluster, task, context);
}

absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const supervise::JobDir& dir,
                                                 const job::Submission& current,
                                                 const cluster::ClusterSpec& cluster,
                                                 const job::Submission& next) {
  return supervise::PlanUpdate(
      current, cluster, next, PlanAddresses(next.spec, cluster),
      [&](const job::Submission& submission, const cluster::ClusterSpec& addresses,
          const cluster::TaskId& task) {
        return LaunchOf(dir, submission, addresses, task, 0, 0);
      });
}

}  // namespace muster::local
