// Compares the tensors of a model with those of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "base/bytes/dtype.h"

namespace muster::checkpoint {

// Returns one line per tensor that is missing, has another shape or type, or is unexpected, in the
// order of the model, then of the checkpoint. Lists at most ten and counts the rest. Returns
// nothing if the checkpoint fits the model.
std::vector<std::string> Differences(const std::vector<base::TensorSpec>& model,
                                     const std::vector<base::TensorSpec>& stored);

}  // namespace muster::checkpoint
