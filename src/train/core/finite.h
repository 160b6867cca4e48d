// Finds values that are not finite, at memory bandwidth.
#pragma once

#include <cstdint>

namespace muster::train {

// Returns true if none of the `n` values is NaN or infinite.
bool AllFinite(const float* values, int64_t n);

}  // namespace muster::train
