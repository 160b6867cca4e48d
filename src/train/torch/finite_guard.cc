#include "train/torch/finite_guard.h"

#include <torch/types.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "train/core/finite.h"

namespace muster::train {

FiniteGuard::FiniteGuard(std::string mode, std::function<std::string()> at,
                         std::function<void(const std::string&)> log)
    : mode_(std::move(mode)), at_(std::move(at)), log_(std::move(log)) {}

absl::Status FiniteGuard::CheckLoss(double loss, bool& skipped) {
  if (std::isfinite(loss) || mode_ == "off") return absl::OkStatus();
  if (mode_ == "skip") {
    log_(absl::StrCat(at_(), ": the loss is ", loss, "; skipping its gradient"));
    skipped = true;
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(at_(), ": the loss is ", loss,
                   "; lower learning_rate, set clip_norm, or skip such batches with "
                   "nan_guard: skip"));
}

bool FiniteGuard::CheckGradient(int parameter, Replica& replica) {
  if (mode_ == "off") return true;
  const torch::Tensor gradient = replica.Gradient(parameter);
  const torch::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
  if (!values.is_contiguous() || AllFinite(values.data_ptr<float>(), values.numel())) return true;
  const std::string& name = replica.variables()[parameter].spec.name;
  if (bad_gradient_.empty()) bad_gradient_ = name;
  if (mode_ == "stop") return false;
  log_(absl::StrCat(at_(), ": the gradient of ", name, " is not finite; skipping it"));
  replica.ZeroGradient(parameter);
  return true;
}

absl::Status FiniteGuard::CheckGradients() const {
  if (bad_gradient_.empty() || mode_ != "stop") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      at_(), ": the gradient of ", bad_gradient_,
      " is not finite; lower learning_rate, set clip_norm, or skip such gradients with "
      "nan_guard: skip"));
}

}  // namespace muster::train
