// The experiment that a job's `train` section describes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// Returns the experiment, or InvalidArgument. `train` is the section as ReadTrain() returns it:
// complete, with absolute paths. `job_name` names the model if the data has no name.
absl::StatusOr<Experiment> ExperimentOf(const nlohmann::json& train, const std::string& job_name);

}  // namespace muster::train
