// Conversion between Muster's element types and torch's.
#pragma once

#include <c10/core/ScalarType.h>

#include "absl/status/statusor.h"
#include "base/bytes/dtype.h"

namespace muster::train {

at::ScalarType ScalarTypeOf(base::DType dtype);
// Returns InvalidArgument for types that only torch has (complex, quantized).
absl::StatusOr<base::DType> DTypeOf(at::ScalarType type);

}  // namespace muster::train
