// Finding values that are not finite, at the speed of memory.
#pragma once

#include <cstdint>

namespace muster::train {

// True when none of them is NaN or infinite.
bool AllFinite(const float* values, int64_t n);

}  // namespace muster::train
