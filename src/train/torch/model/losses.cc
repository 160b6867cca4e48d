#include "train/torch/model/losses.h"

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/suggest.h"

namespace muster::train {
namespace {

using at::Tensor;

// Returns the targets in the shape of the outputs, if they differ only by dimensions of size 1.
Tensor LikeOutputs(const char* loss, const Tensor& outputs, const Tensor& targets) {
  TORCH_CHECK_VALUE(
      outputs.squeeze().sizes() == targets.squeeze().sizes() && outputs.numel() == targets.numel(),
      "the loss ", loss, " needs one target for each output; the model returns ", outputs.sizes(),
      ", the targets are ", targets.sizes());
  return targets.reshape_as(outputs).to(outputs.scalar_type());
}

void CheckRange(const Tensor& targets, int64_t low, int64_t high, const char* reason) {
  if (targets.numel() == 0) return;
  for (const Tensor& target : {targets.min(), targets.max()}) {
    const auto value = target.item<int64_t>();
    TORCH_CHECK_VALUE(value >= low && value < high, "a target is class ", value, ", but ", reason,
                      " has ", high, " classes (", low, " to ", high - 1, ")");
  }
}

// Outputs [batch, classes, …]; targets are classes [batch, …] or probabilities of the same shape.
Tensor CrossEntropyOf(const Tensor& outputs, const Batch& batch) {
  TORCH_CHECK_VALUE(outputs.dim() >= 2,
                    "the loss cross_entropy needs outputs [batch, classes]; the model returns ",
                    outputs.sizes());
  Tensor targets = batch.targets;
  if (targets.is_floating_point()) {
    TORCH_CHECK_VALUE(targets.sizes() == outputs.sizes(),
                      "the loss cross_entropy needs integer classes, or a probability for each "
                      "output; the targets are floating-point numbers of shape ",
                      targets.sizes(), ", the model returns ", outputs.sizes());
    return at::cross_entropy_loss(outputs, targets.to(outputs.scalar_type()));
  }
  std::vector<int64_t> wanted = outputs.sizes().vec();
  wanted.erase(wanted.begin() + 1);
  if (outputs.dim() == 2 && targets.dim() == 2 && targets.size(1) == 1) targets = targets.flatten();
  TORCH_CHECK_VALUE(targets.sizes() == at::IntArrayRef(wanted),
                    "the loss cross_entropy needs targets ", at::IntArrayRef(wanted),
                    " for the model's outputs ", outputs.sizes(), "; the targets are ",
                    targets.sizes());
  targets = targets.to(at::kLong);
  CheckRange(targets, 0, outputs.size(1), "the model's output");
  return at::cross_entropy_loss(outputs, targets);
}

Tensor BinaryCrossEntropyOf(const Tensor& outputs, const Batch& batch) {
  const Tensor targets = LikeOutputs("binary_cross_entropy", outputs, batch.targets);
  TORCH_CHECK_VALUE(targets.numel() == 0 ||
                        (targets.min().item<double>() >= 0 && targets.max().item<double>() <= 1),
                    "the loss binary_cross_entropy needs targets from 0 to 1; they reach from ",
                    targets.min().item<double>(), " to ", targets.max().item<double>());
  return at::binary_cross_entropy_with_logits(outputs, targets);
}

// Returns the number of labels in each row of [batch, length] before the padding of blanks.
std::vector<int64_t> LabelCounts(const Tensor& labels) {
  std::vector<int64_t> counts;
  const auto values = labels.accessor<int64_t, 2>();
  for (int64_t row = 0; row < labels.size(0); ++row) {
    int64_t count = 0;
    while (count < labels.size(1) && values[row][count] != 0) ++count;
    for (int64_t rest = count; rest < labels.size(1); ++rest) {
      TORCH_CHECK_VALUE(values[row][rest] == 0, "target ", row, " of the batch has the blank 0 ",
                        "before the label ", values[row][rest],
                        "; the loss ctc accepts blanks only at the end");
    }
    counts.push_back(count);
  }
  return counts;
}

// CTC needs one time step per label, and one more for a label that repeats the previous one.
void CheckLabelsFit(const Tensor& labels, const std::vector<int64_t>& counts, int64_t time) {
  const auto values = labels.accessor<int64_t, 2>();
  for (int64_t row = 0; row < labels.size(0); ++row) {
    int64_t needed = counts[row];
    for (int64_t i = 1; i < counts[row]; ++i) needed += values[row][i] == values[row][i - 1];
    TORCH_CHECK_VALUE(needed <= time, "target ", row, " of the batch has ", counts[row],
                      " labels and needs ", needed, " time steps; the model returns ", time);
  }
}

Tensor CtcOf(const Tensor& outputs, const Batch& batch) {
  TORCH_CHECK_VALUE(
      outputs.dim() == 3 && batch.targets.dim() == 2 && outputs.size(0) == batch.targets.size(0),
      "the loss ctc needs outputs [batch, time, classes] and targets "
      "[batch, length]; the model returns ",
      outputs.sizes(), ", the targets are ", batch.targets.sizes());
  const Tensor labels = batch.targets.to(at::kLong).contiguous();
  CheckRange(labels, 0, outputs.size(2), "the model's output");
  const std::vector<int64_t> counts = LabelCounts(labels);
  CheckLabelsFit(labels, counts, outputs.size(1));
  const std::vector<int64_t> times(outputs.size(0), outputs.size(1));
  return at::ctc_loss(outputs.log_softmax(2).transpose(0, 1), labels, times, counts);
}

const std::map<std::string, std::function<Loss()>>& LossesByName() {
  static const auto& kLosses = *new std::map<std::string, std::function<Loss()>>{
      {"binary_cross_entropy", BinaryCrossEntropy},
      {"cross_entropy", CrossEntropy},
      {"ctc", Ctc},
      {"huber", Huber},
      {"mae", MeanAbsoluteError},
      {"mse", MeanSquaredError},
  };
  return kLosses;
}

}  // namespace

Loss CrossEntropy() { return CrossEntropyOf; }

Loss BinaryCrossEntropy() { return BinaryCrossEntropyOf; }

Loss MeanSquaredError() {
  return [](const Tensor& outputs, const Batch& batch) {
    return at::mse_loss(outputs, LikeOutputs("mse", outputs, batch.targets));
  };
}

Loss MeanAbsoluteError() {
  return [](const Tensor& outputs, const Batch& batch) {
    return at::l1_loss(outputs, LikeOutputs("mae", outputs, batch.targets));
  };
}

Loss Huber() {
  return [](const Tensor& outputs, const Batch& batch) {
    return at::huber_loss(outputs, LikeOutputs("huber", outputs, batch.targets));
  };
}

Loss Ctc() { return CtcOf; }

std::optional<int64_t> ClassDimension(const Loss& loss) {
  const auto* function = loss.target<Tensor (*)(const Tensor&, const Batch&)>();
  if (function == nullptr) return std::nullopt;
  if (*function == CrossEntropyOf) return 1;
  if (*function == CtcOf) return 2;
  return std::nullopt;
}

absl::StatusOr<Loss> LossByName(const std::string& name) {
  if (const auto found = LossesByName().find(name); found != LossesByName().end()) {
    return found->second();
  }
  std::vector<std::string> names;
  for (const auto& [known, make] : LossesByName()) names.push_back(known);
  return absl::InvalidArgumentError(absl::StrCat("unknown loss '", name, "'",
                                                 base::DidYouMean(name, names),
                                                 "; expected one of ", absl::StrJoin(names, ", ")));
}

}  // namespace muster::train
