// TensorFlow servers of Muster's (job/tf_server.h) in pods. Their program is a ConfigMap, which
// each pod mounts.
#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "nlohmann/json.hpp"

namespace muster::manifest {

// Returns the name of the ConfigMap of a job. It contains a digest of the program, so that another
// version of Muster does not change the program of a running job.
std::string TfServerName(const job::JobSpec& spec);
// Returns the ConfigMap. `metadata` has its name.
nlohmann::ordered_json TfServerConfig(nlohmann::ordered_json metadata);
// Returns true if pods of the role mount it. A task of a rendered cluster runs the server of its
// image, unless the image is one of TensorFlow's own, which has none.
bool MountsTfServer(const job::JobSpec& spec, const job::RoleSpec& role);
bool MountsTfServer(const job::JobSpec& spec);  // of any role

// Returns the path of the program in a pod.
std::string TfServerPath();
// Returns the command of the container.
std::vector<std::string> TfServerCommand();
// Makes the container of the pod with this spec run the server. A volume that is mounted where the
// program belongs is unmounted: it is that of the operator which has stored the template.
void AddTfServer(const job::JobSpec& spec, nlohmann::ordered_json& pod_spec,
                 nlohmann::ordered_json& container);

// Returns the list of jobs that the server in the image of a rendered cluster reads, a literal of
// Python: [{'name': 'ps', 'num_tasks': 2}].
std::string JobConfigLiteral(const job::JobSpec& spec);

}  // namespace muster::manifest
