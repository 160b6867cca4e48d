// What differs between a model and what a checkpoint holds.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"

namespace muster::checkpoint {

// One line a tensor, in the order of the model, then of the checkpoint: missing, of another shape
// or type, unexpected. At most ten, then how many more. Empty when the checkpoint fits the model.
std::vector<std::string> Differences(const std::vector<TensorSpec>& model,
                                     const std::vector<TensorSpec>& stored);

}  // namespace muster::checkpoint
