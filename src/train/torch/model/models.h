// The models that a job file can name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/core/model_input.h"

namespace muster::train {

// Returns a built-in model by name, or loads a TorchScript file (a name that contains '/' or ends
// in .pt or .pth). A built-in model has torch's default initial values, drawn from torch's
// generator, which the caller seeds. Returns InvalidArgument if there is no such model or it does
// not accept the inputs.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const std::string& name_or_file,
                                                 const ModelInput& input);

std::vector<std::string> BuiltInModels();

// Runs the model and the loss on two examples of zeros to detect mismatches before training. Leaves
// the model in training mode.
absl::Status CheckModel(Model& model, const ModelInput& input, const Loss& loss);

}  // namespace muster::train
