// The operations of a model and its loss, recorded while they are executed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/core/model_input.h"
#include "train/run/model_graph.h"

namespace muster::train {

// Runs the model, in evaluation mode, and the loss on a batch of zeros and returns the operations
// that torch has executed, of C++ and of TorchScript models alike. The last one is the loss. Leaves
// the model in training mode, and its tensors unchanged.
absl::StatusOr<std::vector<Operation>> TraceModel(Model& model, const ModelInput& input,
                                                  const Loss& loss, int64_t batch_size);

}  // namespace muster::train
