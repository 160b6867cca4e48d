// The TensorBoard that a v1alpha1 manifest asks for in its section `tensorboard`.
#pragma once

#include <map>
#include <string>

#include "job/job_spec.h"
#include "nlohmann/json.hpp"

namespace muster::manifest {

// The replica type of TensorBoard, beside the roles of the job.
inline constexpr char kTensorboard[] = "tensorboard";

// Returns the section, or null if the job has none.
const nlohmann::json* TensorboardOf(const job::JobSpec& spec);

// Returns the spec of its pod. The image is that of the section, else the job's `tfImage`, else
// `default_image`. REQUIRES: TensorboardOf() is not null.
nlohmann::ordered_json TensorboardPod(const job::JobSpec& spec, const std::string& default_image);
// Returns the spec of its service, port 80.
nlohmann::ordered_json TensorboardService(const job::JobSpec& spec,
                                          const nlohmann::ordered_json& selector);

}  // namespace muster::manifest
