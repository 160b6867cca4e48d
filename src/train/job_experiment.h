// The experiment that a job's `train` section describes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// `train`: the section as ReadTrain() makes it, complete and with absolute paths. `job_name` names
// the model where its data has no name of its own.
absl::StatusOr<Experiment> ExperimentOf(const nlohmann::json& train, const std::string& job_name);

}  // namespace muster::train
