// CRC-32C (Castagnoli, RFC 3720): the check sum of TFRecord files and of Google Cloud Storage.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// Of Crc32c(a), the check sum of a followed by b. Runs at the speed of memory where the processor
// has an instruction for it.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Of Crc32c(a), Crc32c(b) and the size of b, the check sum of a followed by b.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, int64_t second_bytes);

// TFRecord files store check sums in this disguise: the check sum of data that contains check sums
// is weak.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8U;
  return (rotated << 15) | (rotated >> 17);
}

namespace internal {

// The way without the instruction.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view data);

}  // namespace internal
}  // namespace muster
