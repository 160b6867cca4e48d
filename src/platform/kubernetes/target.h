// Maps a submission to its cluster and to its names there.
#pragma once

#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "k8s/client.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

using Json = nlohmann::json;

// Returns the key of the submission's TFJob. It is named after the id, so that every run has its
// own.
k8s::ObjectKey KeyOf(const job::Submission& submission);
// Returns the specification as submitted: named after the TFJob, with the resume variables set. The
// folder of a role that gets the files of the working directory is relative to it.
job::JobSpec SpecInCluster(const job::Submission& submission);
// Returns the addresses of the job's tasks in the cluster.
cluster::ClusterSpec AddressesOf(const job::Submission& submission);

}  // namespace muster::kubernetes
