// CRC-32C (Castagnoli, RFC 3720): the checksum of TFRecord files and of Google Cloud Storage.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster::base {

// Returns Crc32c(a + data), where `crc` is Crc32c(a). Runs at memory speed on processors with a CRC
// instruction.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Returns Crc32c(a + b), where `first` is Crc32c(a), `second` is Crc32c(b) and b has
// `second_bytes`.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, int64_t second_bytes);

// TFRecord files store masked checksums, because the CRC of data that embeds its own CRC is
// degenerate.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8U;
  return (rotated << 15) | (rotated >> 17);
}

namespace internal {

// The table-driven version, for processors without the instruction. Exposed for tests.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view data);

}  // namespace internal
}  // namespace muster::base
