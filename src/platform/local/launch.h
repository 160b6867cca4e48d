// Launch parameters of the tasks of a local job.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/task_launch.h"
#include "supervise/job_dir.h"
#include "supervise/lifecycle.h"

namespace muster::local {

// Returns the number of cores that this process may use.
int UsableCpus();

// Returns the launch parameters of one attempt of a task.
absl::StatusOr<job::TaskLaunch> LaunchOf(const supervise::JobDir& dir,
                                         const job::Submission& submission,
                                         const cluster::ClusterSpec& cluster,
                                         const cluster::TaskId& task, int attempt, int restarts);

// Returns the tasks that must restart when `next` replaces `current`. See supervise/update.h.
absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const supervise::JobDir& dir,
                                                 const job::Submission& current,
                                                 const cluster::ClusterSpec& cluster,
                                                 const job::Submission& next);

}  // namespace muster::local
