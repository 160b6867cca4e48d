// Builds the pod of a task.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "job/target.h"
#include "job/task_launch.h"
#include "nlohmann/json.hpp"

namespace muster::manifest {

using Object = nlohmann::ordered_json;

// Mount point of the job's ConfigMap in a pod, and the file in it that contains the train section.
inline constexpr char kConfigFolder[] = "/etc/muster";
inline constexpr char kTrainFile[] = "train.json";

// Returns the name of that ConfigMap.
std::string ConfigName(const job::JobSpec& spec);

// Returns the name of the Secret that contains the job's certificates.
std::string TlsName(const job::JobSpec& spec);
// Returns true if the tasks communicate over TLS: they run the built-in trainer, and there are
// several.
bool HasTls(const job::JobSpec& spec);

struct PodOptions {
  std::string job_id;
  std::string trainer_image;        // for tasks of the built-in trainer without an image
  job::KubernetesFiles files = {};  // of the working directory, for roles without a template
};

// Returns the command, environment and directory of a task's container.
absl::StatusOr<job::TaskLaunch> PodLaunch(const job::JobSpec& spec,
                                          const cluster::ClusterSpec& cluster,
                                          const cluster::TaskId& task, const PodOptions& options);

// Returns {metadata, spec}, from which a Deployment, a Job or an operator creates the task's pod. A
// manifest's own template is preserved; labels, TF_CONFIG and the port are added to it. Returns
// InvalidArgument if the task cannot run in a pod, for example because its role has no image.
absl::StatusOr<Object> PodTemplate(const job::JobSpec& spec, const cluster::ClusterSpec& cluster,
                                   const cluster::TaskId& task, const PodOptions& options);

// Returns the pod template of a role in a TFJob, shared by all of its tasks. Leaves placeholders
// and variables to the operator, which calls PodTemplate() with it.
absl::StatusOr<Object> RoleTemplate(const job::JobSpec& spec, const job::RoleSpec& role,
                                    const PodOptions& options);

}  // namespace muster::manifest
