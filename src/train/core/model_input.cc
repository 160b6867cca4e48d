#include "train/core/model_input.h"

namespace muster::train {

bool IsFloating(base::DType dtype) {
  return dtype == base::DType::kFloat16 || dtype == base::DType::kBfloat16 ||
         dtype == base::DType::kFloat32 || dtype == base::DType::kFloat64;
}

std::string DefaultLossName(const ModelInput& input) {
  if (input.classes == 2 && IsFloating(input.targets_dtype)) return "binary_cross_entropy";
  return input.classes > 0 ? "cross_entropy" : "mse";
}

int64_t OutputsOf(const ModelInput& input) {
  const std::string loss = input.loss.empty() ? DefaultLossName(input) : input.loss;
  if (loss == "cross_entropy" && input.classes > 0) return input.classes;
  return base::ElementsOf(input.targets);
}

}  // namespace muster::train
