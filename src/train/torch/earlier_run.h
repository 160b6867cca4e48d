// Compares this run with an earlier one in the same model dir.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "muster/train.h"
#include "train/run/model_dir.h"

namespace muster::train {

// Returns FailedPrecondition if the model dir holds a model that was trained to the last step of
// `experiment` with other settings: nothing would be trained, and its results would be attributed
// to this run. If steps are left, only logs the differences.
absl::Status CheckEarlierRun(ModelDir& model_dir, const Experiment& experiment,
                             const std::function<void(const std::string&)>& log);

}  // namespace muster::train
