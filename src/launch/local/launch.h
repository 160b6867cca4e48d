// What a local job's tasks are started with.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/task_launch.h"
#include "launch/job_dir.h"
#include "launch/lifecycle.h"

namespace muster::local {

// The launch of a task in a given attempt.
absl::StatusOr<TaskLaunch> LaunchOf(const JobDir& dir, const Submission& submission,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts);

// What is started anew when `next` takes the place of `current`: launch/update.h.
absl::StatusOr<UpdatePlan> PlanUpdate(const JobDir& dir, const Submission& current,
                                      const ClusterSpec& cluster, const Submission& next);

}  // namespace muster::local
