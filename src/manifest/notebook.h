// A notebook server and TensorBoard beside a job.
#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "manifest/pods.h"

namespace muster::manifest {

struct NotebookOptions {
  std::string kubernetes_namespace;
  std::string image;  // contains Jupyter and TensorBoard
  std::string salt;
};

// Returns the name of the notebook's objects.
std::string NotebookName(const JobSpec& spec);

// Returns the hash in Jupyter's format, sha256:<salt>:<digest>.
std::string PasswordHash(absl::string_view password, absl::string_view salt);

// Returns a Secret (if there is a password), a Service and a Deployment. The Service is internal to
// the cluster; that of a rendered cluster is a load balancer.
std::vector<Object> Notebook(const JobSpec& spec, const NotebookOptions& options);

}  // namespace muster::manifest
