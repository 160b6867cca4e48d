// The files of the working directory in pods. They are a compressed archive in ConfigMaps, which an
// init container unpacks before the task starts.
#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "job/target.h"
#include "nlohmann/json.hpp"

namespace muster::manifest {

// The folder of the files in a pod.
inline constexpr char kWorkFolder[] = "/muster/work";

// Returns true if pods of the role get the files.
bool MountsWorkFiles(const job::KubernetesFiles& files, const job::RoleSpec& role);

// Returns the name of the ConfigMap with part `index` of the archive.
std::string WorkFilesName(const job::JobSpec& spec, const job::KubernetesFiles& files, int index);
// Returns the ConfigMap. `metadata` has its name; `content` is the part.
nlohmann::ordered_json WorkFilesConfig(nlohmann::ordered_json metadata, int index,
                                       const std::string& content);

// Adds the files to the pod with this spec, and makes them the working directory of `container`.
// The init container runs the image of `container` with its permissions and resources. It needs sh,
// cat, gzip and tar. `folder` is that of the task below the working directory.
void AddWorkFiles(const job::JobSpec& spec, const job::KubernetesFiles& files,
                  const std::string& folder, nlohmann::ordered_json& pod_spec,
                  nlohmann::ordered_json& container);

}  // namespace muster::manifest
