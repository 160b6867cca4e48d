// What MUSTER_TRAIN_CONFIG hands to a task of the built-in trainer.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster {

// The `train` section of a job: `text_or_file` is its text, YAML or JSON, or the file that holds
// it. Held to the same rules as in a job file and completed as there, whoever wrote it; relative
// paths are resolved against the working directory.
absl::StatusOr<nlohmann::json> ReadTrainConfig(const std::string& text_or_file);

}  // namespace muster
