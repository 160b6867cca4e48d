#include "train/torch/tensors.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::train {
namespace {

constexpr std::pair<base::DType, at::ScalarType> kTypes[] = {
    {base::DType::kBool, at::kBool},     {base::DType::kUint8, at::kByte},
    {base::DType::kInt8, at::kChar},     {base::DType::kInt16, at::kShort},
    {base::DType::kInt32, at::kInt},     {base::DType::kInt64, at::kLong},
    {base::DType::kFloat16, at::kHalf},  {base::DType::kBfloat16, at::kBFloat16},
    {base::DType::kFloat32, at::kFloat}, {base::DType::kFloat64, at::kDouble},
};

}  // namespace

at::ScalarType ScalarTypeOf(base::DType dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return at::ScalarType::Undefined;
}

absl::StatusOr<base::DType> DTypeOf(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) return ours;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tensors of type ", at::toString(type), " are not supported"));
}

}  // namespace muster::train
