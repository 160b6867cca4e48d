#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "train/torch/model/models.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

constexpr int64_t kTrialBatch = 2;

at::Tensor Zeros(const base::Shape& example, base::DType dtype) {
  base::Shape shape = {kTrialBatch};
  shape.insert(shape.end(), example.begin(), example.end());
  return at::zeros(shape, ScalarTypeOf(dtype));
}

std::string ShapeOf(const at::Tensor& tensor) { return base::ToString(tensor.sizes().vec()); }

absl::Status CheckParameters(Model& model) {
  if (!model.Parameters().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the model has no parameters; there is nothing to train");
}

// Checks that RowsNeeded names tables as RowUse requires.
absl::Status CheckRowUses(Model& model, const at::Tensor& inputs) {
  const NamedTensors parameters = model.Parameters();
  for (const RowUse& use : model.RowsNeeded(inputs)) {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& named) {
      return named.first == use.parameter;
    });
    if (found == parameters.end()) {
      return absl::InvalidArgumentError(absl::StrCat("RowsNeeded of the model names '",
                                                     use.parameter,
                                                     "', which is not one of its parameters"));
    }
    if (found->second.dim() != 2 || use.rows.scalar_type() != at::kLong) {
      return absl::InvalidArgumentError(absl::StrCat(
          "RowsNeeded of the model names '", use.parameter, "' ", ShapeOf(found->second),
          "; it may name only tables [rows, width], and rows as int64"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLossValue(const at::Tensor& value) {
  if (value.defined() && value.numel() == 1 && value.is_floating_point()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the loss must be one floating-point number; it is ",
                   value.defined() ? ShapeOf(value) : "undefined"));
}

absl::Status RunTrial(Model& model, const ModelInput& input, const Loss& loss) {
  at::NoGradGuard no_grad;
  Batch batch;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    batch.inputs = Zeros(input.inputs, input.inputs_dtype);
    batch.targets = Zeros(input.targets, input.targets_dtype);
  }));
  absl::Status rows;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] { rows = CheckRowUses(model, batch.inputs); }));
  MUSTER_RETURN_IF_ERROR(rows);

  at::Tensor outputs;
  const absl::Status forward = CatchTorch([&] { outputs = model.Forward(batch.inputs); });
  if (absl::IsUnknown(forward)) {  // the model's own exception
    return base::Annotate(forward,
                          absl::StrCat("the model failed in a trial with a batch of two zeros ",
                                       ShapeOf(batch.inputs)));
  }
  if (!forward.ok()) {
    return base::Annotate(
        forward,
        absl::StrCat("the model does not accept the data's inputs, ", ShapeOf(batch.inputs),
                     " of type ", base::ToString(input.inputs_dtype), " for a batch of two"));
  }
  if (!outputs.defined() || outputs.dim() == 0 || outputs.size(0) != kTrialBatch) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the first dimension of the model's outputs must be the batch; for two examples ",
        ShapeOf(batch.inputs), " they are ", outputs.defined() ? ShapeOf(outputs) : "undefined"));
  }
  at::Tensor value;
  const absl::Status lost = CatchTorch([&] { value = loss(outputs, batch); });
  if (!lost.ok()) {
    return base::Annotate(
        lost, absl::StrCat("the loss failed in a trial with a batch of two zeros (", "outputs ",
                           ShapeOf(outputs), ", targets ", ShapeOf(batch.targets), ")"));
  }
  return CheckLossValue(value);
}

}  // namespace

absl::Status CheckModel(Model& model, const ModelInput& input, const Loss& loss) {
  absl::Status result;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    result = CheckParameters(model);
    if (!result.ok()) return;
    model.SetTraining(false);
    result = RunTrial(model, input, loss);
    model.SetTraining(true);
  }));
  return result;
}

}  // namespace muster::train
