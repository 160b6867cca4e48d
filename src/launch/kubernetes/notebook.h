// A notebook server and TensorBoard beside a job.
#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "launch/kubernetes/pods.h"

namespace muster::kubernetes {

struct NotebookOptions {
  std::string kubernetes_namespace;
  std::string image;  // has Jupyter and TensorBoard
  std::string salt;
};

// What its objects are called.
std::string NotebookName(const JobSpec& spec);

// As Jupyter keeps it: sha256:<salt>:<digest>.
std::string PasswordHash(absl::string_view password, absl::string_view salt);

// Secret, Service and Deployment. The service is the cluster's own; of a rendered cluster it is a
// load balancer, as it was there.
std::vector<Object> Notebook(const JobSpec& spec, const NotebookOptions& options);

}  // namespace muster::kubernetes
