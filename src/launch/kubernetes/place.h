// Where a job is: in which cluster, and where there.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "k8s/client.h"
#include "launch/submission.h"

namespace muster::kubernetes {

struct Place {
  std::string kubeconfig;  // KUBECONFIG as it was; "": the user's own
  std::string context;     // of it; "": the current one, or this pod's cluster
  std::string name_space;  // "": the job's, else the context's
  std::string trainer_image;
  std::string job;  // the TFJob's name; "": the submission's id
  std::string uid;  // the TFJob's, of which there may be another of that name later; "": not known

  static Place Of(const Submission& submission);
  nlohmann::json ToJson() const;
};

// Signed in there, or as the pod that this runs in. Proxies and authorities are the environment's.
absl::StatusOr<std::unique_ptr<k8s::Client>> Connect(const Place& place,
                                                     k8s::ClientOptions options);

// The TFJob of a submission is called after its id, so that every run has one of its own.
k8s::ObjectKey KeyOf(const Submission& submission);
JobSpec SpecInCluster(const Submission& submission);
// What its tasks are reached by.
ClusterSpec AddressesOf(const Submission& submission);

}  // namespace muster::kubernetes
