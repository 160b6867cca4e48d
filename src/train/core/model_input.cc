#include "train/core/model_input.h"

namespace muster::train {

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

std::string DefaultLossName(const ModelInput& input) {
  if (input.classes == 2 && IsFloating(input.targets_dtype)) return "binary_cross_entropy";
  return input.classes > 0 ? "cross_entropy" : "mse";
}

int64_t OutputsOf(const ModelInput& input) {
  const std::string loss = input.loss.empty() ? DefaultLossName(input) : input.loss;
  if (loss == "cross_entropy" && input.classes > 0) return input.classes;
  return ElementsOf(input.targets);
}

}  // namespace muster::train
