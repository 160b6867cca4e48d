// Derives the state of a task from the status of its pod.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "k8s/resource.h"

namespace muster::manifest {

using k8s::Json;

// Labels of the objects of a TFJob, common to all operators.
inline constexpr char kTfJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";

// The condition of a pod that the control plane or the kubelet evicts from its node.
inline constexpr char kDisruptionTarget[] = "DisruptionTarget";

// Returns the task of a pod by its labels, or nullopt if they are missing or invalid.
std::optional<cluster::TaskId> TaskOf(const Json& pod);

// Status of the container whose exit code counts.
struct ContainerStatus {
  bool running = false;
  bool waiting = false;
  bool terminated = false;
  bool ended = false;   // its last run is over: terminated, or waiting for the next
  std::string reason;   // of the wait or the end: "ImagePullBackOff", "OOMKilled", "Error"
  std::string message;  // details of `reason`
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::optional<int> exit_code;
  int restarts = 0;  // in the same pod

  bool has_output() const { return running || ended; }
};
// Returns a default value if the container has no status yet.
ContainerStatus StatusOf(const Json& pod);

// Returns true if the pod's end reflects its program. A pod that is being deleted is killed
// whatever its program does, so exit code 0 is not a success, and 143 is not a failure. The
// exception is a pod whose containers had all finished well before the deletion was requested.
bool OutcomeCounts(const Json& pod);

// Returns why a failed pod was lost: the cluster evicted it or its node is gone, and its exit code,
// if any, is that of a kill. Returns nullopt if the pod has not failed, or if its program failed.
std::optional<std::string> WhyLost(const Json& pod);

// Returns why the cluster evicts, or has evicted, the pod, such as "EvictionByEvictionAPI: …"; ""
// if it does not.
std::string Disruption(const Json& pod);

// Returns in one line why the pod does not run yet; "" if there is nothing to report.
std::string WhyWaiting(const Json& pod);

}  // namespace muster::manifest
