// What a pod's status says of its task.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "k8s/resource.h"

namespace muster::kubernetes {

using k8s::Json;

// Labels of what belongs to a TFJob, whichever operator made it.
inline constexpr char kTfJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";

// Which task of its job it is, by its labels; nullopt when they do not say.
std::optional<TaskId> TaskOf(const Json& pod);

// The container whose exit code counts.
struct ContainerStatus {
  bool running = false;
  bool waiting = false;
  bool terminated = false;
  bool ended = false;   // its last run is over: terminated, or waiting for the next
  std::string reason;   // of its waiting or its end: "ImagePullBackOff", "OOMKilled", "Error"
  std::string message;  // the same in words
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::optional<int> exit_code;
  int restarts = 0;  // in place

  bool has_output() const { return running || ended; }
};
ContainerStatus StatusOf(const Json& pod);

// Why it does not run yet, in one line; "" when there is nothing to say.
std::string WhyWaiting(const Json& pod);

}  // namespace muster::kubernetes
