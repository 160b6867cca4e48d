// Plans the update of a running job to a changed job file.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "supervise/lifecycle.h"

namespace muster {

// Returns the launch of a task's first attempt.
using LaunchFunction = std::function<absl::StatusOr<TaskLaunch>(
    const Submission& submission, const ClusterSpec& cluster, const TaskId& task)>;

// Returns the tasks to add, remove, restart and keep. A task restarts if its command, environment
// (including the cluster in TF_CONFIG), directory or train section changes. A change of policies
// alone restarts no task. `next_cluster` contains the addresses of `next`'s tasks, as far as they
// are known before the start.
absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current, const ClusterSpec& cluster,
                                      const Submission& next, const ClusterSpec& next_cluster,
                                      const LaunchFunction& launch_of);

}  // namespace muster
