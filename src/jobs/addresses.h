// The addresses of a job that is not running, for tasks that are started by hand.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "jobs/service.h"

namespace muster::jobs {

// Returns the addresses that the tasks would have on the submission's target, the same for every
// call: on this machine, tasks without a port get consecutive ones from 2222, TensorFlow's
// convention. Prepares the submission by its platform if its tasks run elsewhere. Returns
// FailedPrecondition if the platform assigns addresses only when the job starts.
absl::StatusOr<cluster::ClusterSpec> AddressesBeforeStart(Service& service,
                                                          job::Submission& submission);

}  // namespace muster::jobs
