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

// The condition of a pod that the control plane or the kubelet takes from its node.
inline constexpr char kDisruptionTarget[] = "DisruptionTarget";

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

// Whether the pod's end says anything about its program. A pod that is being deleted is not judged:
// it is stopped whatever it does, so exit code 0 is no success and 143 no failure. The exception is
// a container that had finished well before the deletion was requested.
bool IsJudged(const Json& pod);

// Why a pod that has failed was lost: the cluster took it from its node, or its node went, and its
// exit code, if any, is that of being killed. nullopt when the pod has not failed, or its program
// did.
std::optional<std::string> WhyLost(const Json& pod);

// Why the cluster ends, or has ended, the pod: "EvictionByEvictionAPI: …"; "" when it does not say.
std::string Disruption(const Json& pod);

// Why it does not run yet, in one line; "" when there is nothing to say.
std::string WhyWaiting(const Json& pod);

}  // namespace muster::kubernetes
