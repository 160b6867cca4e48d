// Reads and writes TF_CONFIG and the four flags of older trainers. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec.h"

namespace muster::cluster {

struct TfConfig {
  ClusterSpec cluster;
  std::optional<TaskId> task;  // none: a single local process
  std::string model_dir;       // "" = none
  std::string environment;     // "local" (also when absent) or "cloud"
  bool sparse = false;         // a partial cluster; Kubeflow programs read it from sparseCluster
  bool operator==(const TfConfig&) const = default;
};

// Returns one line of JSON with a stable key order: cluster (roles sorted; a list if the indices
// have no gaps, else an object index -> address), task {type, index}, model_dir, environment. A
// sparse config has both cluster and sparseCluster, with workers always as an object.
std::string WriteTfConfig(const TfConfig& config);

// Parses TF_CONFIG by TensorFlow's rules: without a task type the process is single and local; the
// index defaults to 0; a task must be in the cluster, except for an evaluator, which never is.
// `model_dir` is the one from the configuration ("" = none); TF_CONFIG must not name a different
// one. sparseCluster is read only if there is no cluster. Returns InvalidArgument with the expected
// form.
absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json, absl::string_view model_dir = "");

// Returns true if the task is the chief: master:0 or chief:0 if the cluster has one, else worker:0.
// A process without a cluster is its own chief.
bool IsChief(const TfConfig& config);

// Returns --job_name=… --task_index=… --ps_hosts=… --worker_hosts=…
std::vector<std::string> WriteTaskFlags(const ClusterSpec& cluster, const TaskId& task);

struct TaskFlags {
  std::string job_name;
  int task_index = 0;
  std::string ps_hosts;  // host:port,host:port
  std::string worker_hosts;
};
// Returns InvalidArgument, with the flag, if the flags are inconsistent.
absl::StatusOr<TfConfig> ReadTaskFlags(const TaskFlags& flags);

}  // namespace muster::cluster
