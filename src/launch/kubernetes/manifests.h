// A job as manifests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "launch/kubernetes/pods.h"

namespace muster::kubernetes {

struct RenderOptions {
  std::string kubernetes_namespace;  // "": the job's, else "default"
  bool create_namespace = false;
  std::string domain = "cluster.local";
  std::string trainer_image;
  std::string notebook_image;
  std::string salt;  // of the notebook's password; unlike for every rendering
};

// In the order in which they are to be made. For every task a headless service and a Job, which
// makes its pod anew by the role's restart policy; of a rendered cluster, whose servers never end,
// a Deployment. Beside them the job's config, a network policy that admits only the job's own pods
// to its ports, and the notebook. InvalidArgument for what cannot run in a cluster.
absl::StatusOr<std::vector<Object>> RenderJob(const JobSpec& spec, const RenderOptions& options);

// The same job for a cluster with an operator: a TFJob, which is the last, and what it needs beside
// it. InvalidArgument also for roles that a TFJob does not know.
absl::StatusOr<std::vector<Object>> RenderTfJob(const JobSpec& spec, const RenderOptions& options);

}  // namespace muster::kubernetes
