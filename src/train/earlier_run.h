// What an earlier run in the same model dir means for this one.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "muster/train.h"
#include "train/model_dir.h"

namespace muster::train {

// FailedPrecondition when the model dir holds a model that was trained as far as `experiment` goes,
// with other settings: nothing would be trained, and its results would be taken for this run's.
// Where there is more to train, the differences are only logged.
absl::Status CheckEarlierRun(ModelDir& model_dir, const Experiment& experiment,
                             const std::function<void(const std::string&)>& log);

}  // namespace muster::train
