// Element types and shapes of tensors, shared by files, the wire protocol and batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

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

// Returns the size of an element in bytes.
int64_t SizeOf(DType dtype);
// Returns the name used by the safetensors format: "F32", "I64", …
absl::string_view ToString(DType dtype);
// The inverse of ToString(); nullopt for other names.
std::optional<DType> ParseDType(absl::string_view name);

using Shape = std::vector<int64_t>;

// Returns the number of elements of a tensor of that shape; 1 for a scalar.
int64_t ElementsOf(const Shape& shape);
// Returns "[64, 1, 28, 28]".
std::string ToString(const Shape& shape);

// Name, element type and shape of a tensor, without its values.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;

  int64_t bytes() const { return ElementsOf(shape) * SizeOf(dtype); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace muster::base
