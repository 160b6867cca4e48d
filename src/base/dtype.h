// The element types that tensors have on disk, on the wire and in batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

enum class DType {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64
};

int64_t SizeOf(DType dtype);
// The names of the safetensors format: "F32", "I64", …
absl::string_view ToString(DType dtype);
std::optional<DType> ParseDType(absl::string_view name);

using Shape = std::vector<int64_t>;

// How many elements a tensor of that shape has; 1 for a scalar.
int64_t ElementsOf(const Shape& shape);
// "[64, 1, 28, 28]"
std::string ToString(const Shape& shape);

// What a tensor is, without its values.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;

  int64_t bytes() const { return ElementsOf(shape) * SizeOf(dtype); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace muster
