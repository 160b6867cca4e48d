// Reads MUSTER_TRAIN_CONFIG, the configuration of a task of the built-in trainer.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// Returns the `train` section of a job, checked and completed by the rules of a job file.
// `text_or_file` is its text, in YAML or JSON, or the path of a file with the text. Resolves
// relative paths against the working directory. Returns InvalidArgument with all mistakes.
absl::StatusOr<nlohmann::json> ReadTrainConfig(const std::string& text_or_file);

}  // namespace muster::job
