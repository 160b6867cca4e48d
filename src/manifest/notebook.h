// A notebook server and TensorBoard beside a job.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "manifest/pods.h"

namespace muster::manifest {

struct NotebookOptions {
  std::string kubernetes_namespace;
  std::string image;  // contains Jupyter and TensorBoard
  std::string salt;
  cluster::ClusterSpec cluster;  // of the job; empty: the notebook is alone
};

// Returns the name of the notebook's objects.
std::string NotebookName(const job::JobSpec& spec);

// Returns a salt for PasswordHash() that no other password has.
std::string RandomSalt();
// Returns the hash in Jupyter's format, sha256:<salt>:<digest>.
std::string PasswordHash(absl::string_view password, absl::string_view salt);

// Returns a Secret (if there is a password), a Service and a Deployment. The Service is internal to
// the cluster; that of a rendered cluster is a load balancer. Programs of the notebook find the job
// in TF_CONFIG and CLUSTER_CONFIG. TensorBoard shows the model dir of the job or, if it has none, a
// folder that it shares with the notebook.
std::vector<Object> Notebook(const job::JobSpec& spec, const NotebookOptions& options);

}  // namespace muster::manifest
