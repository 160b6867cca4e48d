// Launch parameters of the tasks of a local job.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/task_launch.h"
#include "supervise/job_dir.h"
#include "supervise/lifecycle.h"

namespace muster::local {

// Returns the launch parameters of one attempt of a task.
absl::StatusOr<TaskLaunch> LaunchOf(const JobDir& dir, const Submission& submission,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts);

// Returns the tasks that must restart when `next` replaces `current`. See supervise/update.h.
absl::StatusOr<UpdatePlan> PlanUpdate(const JobDir& dir, const Submission& current,
                                      const ClusterSpec& cluster, const Submission& next);

}  // namespace muster::local
