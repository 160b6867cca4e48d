#include "train/core/finite.h"

#include <algorithm>
#include <cstring>

namespace muster::train {
namespace {

// The scan stops at the end of the first block that has NaN or infinity.
constexpr int64_t kBlock = 4096;

// Returns the largest bit pattern of a block, signs cleared. NaN and infinity have larger patterns
// than all finite values. Compiled for several instruction sets and dispatched at load time.
__attribute__((target_clones("avx512f", "avx2", "default"))) int32_t LargestBits(
    const float* values, int64_t n) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    int32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    largest = std::max(largest, bits & 0x7fffffff);
  }
  return largest;
}

}  // namespace

bool AllFinite(const float* values, int64_t n) {
  constexpr int32_t kInfinity = 0x7f800000;
  for (int64_t i = 0; i < n; i += kBlock) {
    if (LargestBits(values + i, std::min(kBlock, n - i)) >= kInfinity) return false;
  }
  return true;
}

}  // namespace muster::train
