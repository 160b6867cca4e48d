// The task that a process of the trainer runs, and its environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec.h"
#include "cluster/task_id.h"
#include "cluster/tf_config.h"

namespace muster::train {

struct Environment {
  cluster::ClusterSpec cluster;  // without the evaluator; empty for a single process
  cluster::TaskId self{"chief", 0};
  bool is_chief = true;
  std::string model_dir;
  std::string job_name;
  int attempt = 0;
  std::string socket_dir;         // private to the job, on this machine; "": none
  std::string tls_dir;            // the job's certificates; "": none
  bool plaintext = false;         // allow TCP without certificates between machines
  std::string progress_file;      // "": none
  std::string error_file;         // "": none
  std::string train_config;       // the job's train section: a JSON file or its text; "": none
  std::optional<int> evaluators;  // absent: unknown
  std::optional<int64_t> resume_step;
  std::string job_id;
  std::optional<absl::Duration> start_timeout;
  std::optional<absl::Duration> peer_timeout;

  // Reads TF_CONFIG and Muster's variables. `flags`, the four flags of older trainers, take
  // precedence over TF_CONFIG.
  static absl::StatusOr<Environment> FromEnv(const std::optional<cluster::TaskFlags>& flags);

  // Returns the tasks that train, the chief first.
  std::vector<cluster::TaskId> TrainingTasks() const;
  // Returns this task's index among TrainingTasks(), or -1 if it does not train.
  int Rank() const;
  int Servers() const;
  // Returns the address of a task for the transport: a socket in socket_dir, or its host:port.
  std::string AddressOf(const cluster::TaskId& task) const;
  // Returns whether the chief evaluates, since the job has no evaluator.
  bool ChiefEvaluates() const;
};

}  // namespace muster::train
