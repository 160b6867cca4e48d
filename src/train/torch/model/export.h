// Export of a trained model as a TorchScript file, for Python, C++ and servers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"

namespace muster::train {

struct ExportedModel {
  // True if the file accepts batches of any size. A C++ model that reads the batch size from its
  // inputs (view({x.size(0), -1}) instead of flatten(1)) accepts only that of the example.
  bool any_batch_size = true;
};

// Writes the model, in evaluation mode, to `path`. Replaces an existing file only after verifying
// that the export reproduces the model's outputs for `example_inputs`, a batch of at least one. A
// TorchScript model is saved as it is; a C++ model is traced with the example, and its parameters
// and buffers keep their dotted names. Leaves the model in training mode.
absl::StatusOr<ExportedModel> ExportTorchScript(Model& model, const torch::Tensor& example_inputs,
                                                const std::string& path);

}  // namespace muster::train
