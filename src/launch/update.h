// What a changed job file changes of a job that runs.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/task_launch.h"
#include "launch/lifecycle.h"
#include "launch/submission.h"

namespace muster {

// What a task is started with the first time.
using LaunchFunction = std::function<absl::StatusOr<TaskLaunch>(
    const Submission& submission, const ClusterSpec& cluster, const TaskId& task)>;

// A task restarts when what it is started with changes: command, environment (the cluster in
// TF_CONFIG too) or directory. A change of policies alone restarts nothing. `next_cluster` has the
// addresses of `next`'s tasks, as far as they are known before they start.
absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current, const ClusterSpec& cluster,
                                      const Submission& next, const ClusterSpec& next_cluster,
                                      const LaunchFunction& launch_of);

}  // namespace muster
