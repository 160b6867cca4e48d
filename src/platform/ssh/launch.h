// Addresses and launch parameters of the tasks of a job on hosts.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "job/task_launch.h"

namespace muster::ssh {

// Returns the hosts of a submission's target, or DataLoss if a task of the job has none.
absl::StatusOr<HostAssignment> AssignmentOf(const Submission& submission);

// Returns the addresses of a job's tasks: the one fixed by the user, else the one in `current` if
// the task stays on its host, else kUnassigned.
ClusterSpec PlanAddresses(const JobSpec& spec, const HostAssignment& assignment,
                          const ClusterSpec& current);
// Returns true if Muster picks the task's port and may therefore change it.
bool IsPicked(const JobSpec& spec, const TaskId& task);

// Returns the launch parameters of one attempt of a task. REQUIRES: `assignment` has a host for
// `task`.
absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const HostAssignment& assignment,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts);

}  // namespace muster::ssh
