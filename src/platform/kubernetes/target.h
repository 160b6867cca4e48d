// Maps a submission to its cluster and to its names there.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/submission.h"
#include "k8s/client.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

using Json = nlohmann::json;

// Returns a client with the credentials of the target's kubeconfig, or of the pod that this process
// runs in. Proxies and certificate authorities are taken from the environment.
absl::StatusOr<std::unique_ptr<k8s::Client>> Connect(const KubernetesTarget& target,
                                                     k8s::ClientOptions options);

// Returns the key of the submission's TFJob. It is named after the id, so that every run has its
// own.
k8s::ObjectKey KeyOf(const Submission& submission);
// Returns the specification as submitted: named after the TFJob, with the resume variables set.
JobSpec SpecInCluster(const Submission& submission);
// Returns the addresses of the job's tasks in the cluster.
ClusterSpec AddressesOf(const Submission& submission);

}  // namespace muster::kubernetes
