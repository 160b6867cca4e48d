// The pod of a task.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "job/task_launch.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

using Object = nlohmann::ordered_json;

// Where a pod finds the job's train section: a file of its config map.
inline constexpr char kConfigFolder[] = "/etc/muster";
inline constexpr char kTrainFile[] = "train.json";

// The name of the config map that holds it.
std::string ConfigName(const JobSpec& spec);

// Tasks of the built-in trainer speak to each other by TLS: the name of the secret that holds the
// job's certificates.
std::string TlsName(const JobSpec& spec);
bool HasTls(const JobSpec& spec);

// What Kubernetes' Pod Security Standard `restricted` demands of a pod and of each container.
Object RestrictedPod();
Object RestrictedContainer();

struct PodOptions {
  std::string job_id;
  std::string trainer_image;  // for tasks of the built-in trainer that name no image
};

// What a task's container is started with.
absl::StatusOr<TaskLaunch> PodLaunch(const JobSpec& spec, const ClusterSpec& cluster,
                                     const TaskId& task, const PodOptions& options);

// {metadata, spec}: what a Deployment, a Job or an operator makes the task's pod from. A manifest's
// own template is kept; to it come labels, TF_CONFIG and the port. InvalidArgument for what cannot
// run in a pod, such as a role without an image.
absl::StatusOr<Object> PodTemplate(const JobSpec& spec, const ClusterSpec& cluster,
                                   const TaskId& task, const PodOptions& options);

// What a TFJob holds for a role: the same for all of its tasks. Placeholders and variables are left
// to the operator, which calls PodTemplate() with it.
absl::StatusOr<Object> RoleTemplate(const JobSpec& spec, const RoleSpec& role,
                                    const PodOptions& options);

}  // namespace muster::kubernetes
