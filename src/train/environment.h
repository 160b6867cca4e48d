// What a process of the trainer knows of its place in the job.
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
  ClusterSpec cluster;  // without the evaluator; empty: a single process
  TaskId self{"chief", 0};
  bool is_chief = true;
  std::string model_dir;
  std::string job_name;
  int attempt = 0;
  std::string socket_dir;         // private to the job, on this machine; "" = none
  std::string tls_dir;            // the job's certificates; "" = none
  bool plaintext = false;         // without certificates even between machines
  std::string progress_file;      // "" = none
  std::string error_file;         // "" = none
  std::string train_config;       // the job's train section: a JSON file, or its text; "" = none
  std::optional<int> evaluators;  // absent: not known
  std::optional<int64_t> resume_step;
  std::string job_id;
  std::optional<absl::Duration> start_timeout;
  std::optional<absl::Duration> peer_timeout;

  // TF_CONFIG or `flags` (the four of older trainers), and Muster's variables. `flags` wins.
  static absl::StatusOr<Environment> FromEnv(const std::optional<TaskFlags>& flags);

  // The tasks that train, the chief first.
  std::vector<TaskId> TrainingTasks() const;
  // This task's place among them; -1: it does not train.
  int Rank() const;
  int Servers() const;
  // Where a task listens and is reached: a socket in socket_dir, or its address.
  std::string AddressOf(const TaskId& task) const;
  // Who trains evaluates: there is no evaluator.
  bool ChiefEvaluates() const;
};

}  // namespace muster::train
