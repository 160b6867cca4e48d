// Conversion of floats to and from 16 bits, for the wire.
#pragma once

#include <cstdint>

namespace muster::train {

// Convert `n` elements. Rounding is to nearest, ties to even; a value that is too large becomes
// infinite; NaN stays NaN. The 16-bit side may have any alignment.
void ToFloat16(const float* from, void* to, int64_t n);
void FromFloat16(const void* from, float* to, int64_t n);
void ToBfloat16(const float* from, void* to, int64_t n);
void FromBfloat16(const void* from, float* to, int64_t n);

}  // namespace muster::train
