// Plans the update of a running job to a changed job file.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "supervise/lifecycle.h"

namespace muster::supervise {

// Returns the launch of a task's first attempt.
using LaunchFunction = std::function<absl::StatusOr<job::TaskLaunch>(
    const job::Submission& submission, const cluster::ClusterSpec& cluster,
    const cluster::TaskId& task)>;

// Returns the tasks to add, remove, restart and keep. A task restarts if its command, environment
// (including the cluster in TF_CONFIG), directory, train section, the version of its files or the
// generation changes. A change of policies alone restarts no task. `next_cluster` contains the
// addresses of `next`'s tasks, as far as they are known before the start.
absl::StatusOr<UpdatePlan> PlanUpdate(const job::Submission& current,
                                      const cluster::ClusterSpec& cluster,
                                      const job::Submission& next,
                                      const cluster::ClusterSpec& next_cluster,
                                      const LaunchFunction& launch_of);

}  // namespace muster::supervise
