// A trained model as a TorchScript file, for Python, C++ and servers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"

namespace muster::train {

struct ExportedModel {
  // Whether the file takes batches of any size. A C++ model that reads the batch size out of its
  // inputs (view({x.size(0), -1}) where flatten(1) would do) takes only that of the example.
  bool any_batch_size = true;
};

// Writes the model, in evaluation mode, to `path`. What is there is replaced only by a file that
// was loaded again and gave the model's own outputs for `example_inputs`, a batch of at least one.
// A TorchScript model stays what it is; a C++ model is traced with the example, and its parameters
// and buffers keep their dotted names. The model is in training mode afterwards.
absl::StatusOr<ExportedModel> ExportTorchScript(Model& model, const torch::Tensor& example_inputs,
                                                const std::string& path);

}  // namespace muster::train
