#include "train/torch/tensors.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::train {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::kBool, at::kBool},     {DType::kUint8, at::kByte},
    {DType::kInt8, at::kChar},     {DType::kInt16, at::kShort},
    {DType::kInt32, at::kInt},     {DType::kInt64, at::kLong},
    {DType::kFloat16, at::kHalf},  {DType::kBfloat16, at::kBFloat16},
    {DType::kFloat32, at::kFloat}, {DType::kFloat64, at::kDouble},
};

}  // namespace

at::ScalarType ScalarTypeOf(DType dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return at::ScalarType::Undefined;
}

absl::StatusOr<DType> DTypeOf(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) return ours;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tensors of type ", at::toString(type), " are not supported"));
}

}  // namespace muster::train
