// Renders a job as Kubernetes manifests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "job/job_tls.h"
#include "manifest/pods.h"

namespace muster::manifest {

struct RenderOptions {
  std::string kubernetes_namespace;  // "" selects the job's, or else "default"
  bool create_namespace = false;
  std::string domain = "cluster.local";
  std::string trainer_image;
  std::string notebook_image;
  std::string salt;                          // of the notebook's password; unique to each rendering
  std::optional<job::JobTls> tls;            // for a job with TLS; nullopt if its Secret exists
  job::KubernetesFiles files = {};           // of the working directory, for RenderTfJob()
  std::vector<std::string> file_parts = {};  // their content; empty if the ConfigMaps exist
};

// Returns the objects in the order of their creation. Every task gets a headless Service and a Job,
// which recreates its pod by the role's restart policy; a task of a rendered cluster, whose servers
// never exit, gets a ReplicaSet instead. The job gets a ConfigMap, a NetworkPolicy that admits only
// its own pods, and the notebook. Returns InvalidArgument if the job cannot run in a cluster.
absl::StatusOr<std::vector<Object>> RenderJob(const job::JobSpec& spec,
                                              const RenderOptions& options);

// Returns the settings of the job that the objects of RenderJob() do not express, each with what
// happens instead.
std::vector<std::string> RenderLimits(const job::JobSpec& spec);

// Returns the objects of the same job for a cluster with an operator: a TFJob, which is the last,
// and the objects it depends on. Returns InvalidArgument also for roles that a TFJob does not
// support.
absl::StatusOr<std::vector<Object>> RenderTfJob(const job::JobSpec& spec,
                                                const RenderOptions& options);

}  // namespace muster::manifest
