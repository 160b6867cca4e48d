// The models that a job file can name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/model_input.h"

namespace muster::train {

// A built-in model by its name, or a TorchScript file: what contains a '/' or ends in .pt or .pth.
// A built-in model's parameters have torch's usual first values, from torch's generator, which the
// caller seeds. InvalidArgument when there is no such model or it cannot take such inputs.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const std::string& name_or_file,
                                                 const ModelInput& input);

std::vector<std::string> BuiltInModels();

// Runs the model and the loss on two examples of zeros, so that what does not fit together is
// explained before training. The model is in training mode afterwards.
absl::Status CheckModel(Model& model, const ModelInput& input, const Loss& loss);

}  // namespace muster::train
