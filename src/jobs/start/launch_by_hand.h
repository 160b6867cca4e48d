// The launch parameters of tasks that the user starts by hand.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "jobs/service.h"

namespace muster::jobs {

// A job and the addresses of its tasks.
struct JobCluster {
  job::Submission submission;
  cluster::ClusterSpec cluster;
};

// Returns the addresses that the tasks would have on the submission's target, the same for every
// call: on this machine, tasks without a port get consecutive ones from 2222, TensorFlow's
// convention. Prepares the submission by its platform if its tasks run elsewhere, unless the job is
// rendered. Returns FailedPrecondition if the platform assigns addresses only when the job starts.
absl::StatusOr<JobCluster> ClusterBeforeStart(Service& service, job::Submission submission);

// Returns the recorded addresses of a job that has started.
absl::StatusOr<JobCluster> ClusterOf(Service& service, const job::JobRecord& job);

// Returns how a task is launched by hand, without the variables that refer to a job folder.
// `certificates` is the folder of the job's certificates; "" = none. Returns InvalidArgument if the
// job has no such task.
absl::StatusOr<job::TaskLaunch> LaunchByHand(Service& service, const JobCluster& job,
                                             const cluster::TaskId& task,
                                             const std::string& certificates);

}  // namespace muster::jobs
