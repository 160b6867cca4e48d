#include "base/bytes/dtype.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::base {
namespace {

struct Entry {
  DType dtype;
  absl::string_view name;
  int64_t size;
};

// Indexed by DType: keep the order of the enum.
constexpr Entry kEntries[] = {
    {DType::kBool, "BOOL", 1},   {DType::kUint8, "U8", 1},      {DType::kInt8, "I8", 1},
    {DType::kInt16, "I16", 2},   {DType::kInt32, "I32", 4},     {DType::kInt64, "I64", 8},
    {DType::kFloat16, "F16", 2}, {DType::kBfloat16, "BF16", 2}, {DType::kFloat32, "F32", 4},
    {DType::kFloat64, "F64", 8},
};

}  // namespace

int64_t SizeOf(DType dtype) { return kEntries[static_cast<int>(dtype)].size; }

absl::string_view ToString(DType dtype) { return kEntries[static_cast<int>(dtype)].name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

int64_t ElementsOf(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

std::string ToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace muster::base
