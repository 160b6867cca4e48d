// TF_CONFIG in both directions, and the four-flag form that older trainers take. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec.h"

namespace muster {

struct TfConfig {
  ClusterSpec cluster;
  std::optional<TaskId> task;  // none: a single local process
  std::string model_dir;       // "" = none
  std::string environment;     // "local" (also when absent) or "cloud"
  bool sparse = false;         // a part of a cluster: Kubeflow's programs look in sparseCluster
  bool operator==(const TfConfig&) const = default;
};

// One line of JSON with stable key order: cluster (roles sorted; a list when the indices have no
// gap, else an object index -> address), task {type, index}, model_dir, environment. A sparse one
// has the cluster under both names; there the workers are always an object.
std::string WriteTfConfig(const TfConfig& config);

// TensorFlow's rules: no task type -> a single local process; index defaults to 0; a task that is
// not in the cluster is an error (an evaluator is never expected there). `model_dir` is the
// configuration's own, "" = none: a different one in TF_CONFIG is an error. A sparseCluster is
// taken where there is no cluster. Every error says what was expected.
absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json, absl::string_view model_dir = "");

// Which task leads: master:0 or chief:0 where the cluster has one, else worker:0; a process without
// a cluster leads itself.
bool IsChief(const TfConfig& config);

// --job_name=… --task_index=… --ps_hosts=… --worker_hosts=…
std::vector<std::string> WriteTaskFlags(const ClusterSpec& cluster, const TaskId& task);

struct TaskFlags {
  std::string job_name;
  int task_index = 0;
  std::string ps_hosts;  // host:port,host:port
  std::string worker_hosts;
};
absl::StatusOr<TfConfig> ReadTaskFlags(const TaskFlags& flags);

}  // namespace muster
