// Addresses and launch parameters of the tasks of a job on hosts.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "supervise/lifecycle.h"

namespace muster::ssh {

// Returns the hosts of a submission's target, or DataLoss if a task of the job has none.
absl::StatusOr<job::HostAssignment> AssignmentOf(const job::Submission& submission);

// Returns the addresses of a job's tasks: the one fixed by the user, else the one in `current` if
// the task stays on its host, else kUnassigned.
cluster::ClusterSpec PlanAddresses(const job::JobSpec& spec, const job::HostAssignment& assignment,
                                   const cluster::ClusterSpec& current);
// Returns true if Muster picks the task's port and may therefore change it.
bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task);

// Returns the launch parameters of one attempt of a task. REQUIRES: `assignment` has a host for
// `task`.
absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                         const job::HostAssignment& assignment,
                                         const cluster::ClusterSpec& cluster,
                                         const cluster::TaskId& task, int attempt, int restarts);

// Returns the tasks that must restart when `next` replaces `current`. See supervise/update.h.
absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::Submission& current,
                                                 const cluster::ClusterSpec& cluster,
                                                 const job::Submission& next);

}  // namespace muster::ssh
