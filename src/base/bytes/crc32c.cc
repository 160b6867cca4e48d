#include "base/bytes/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::base {
namespace {

static_assert(std::endian::native == std::endian::little);

// Polynomials over GF(2), modulo P = 0x11edc6f41, with the coefficient of x^0 in the highest bit.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr uint32_t TimesX(uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

constexpr uint32_t Times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = TimesX(b)) {
    if ((a & 0x80000000) != 0) product ^= b;
  }
  return product;
}

uint64_t Load64(const char* data) {
  uint64_t word = 0;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// kTables[k][b] is the contribution of byte b when k more bytes follow it (slicing-by-8).
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) value = TimesX(value);
      table[byte] = value;
    }
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)

#define MUSTER_CRC_TARGET [[gnu::target("sse4.2,pclmul")]]

constexpr uint32_t XToThe(int64_t exponent) {
  uint32_t value = 0x80000000;
  for (int64_t i = 0; i < exponent; ++i) value = TimesX(value);
  return value;
}

// Returns crc · x^(8 · kBytes), not yet reduced; the caller reduces it with the CRC instruction.
// The exponent is 33 less: the instruction multiplies by x^32, and a carry-less product of two
// bit-reversed numbers is one bit short.
template <int64_t kBytes>
MUSTER_CRC_TARGET uint64_t Advance(uint32_t crc) {
  constexpr uint32_t kFactor = XToThe(8 * kBytes - 33);
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(crc)),
                                               _mm_cvtsi32_si128(static_cast<int>(kFactor)), 0);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(product));
}

// The instruction has a latency of three cycles and a throughput of one, so three lanes of kLane
// bytes run interleaved and are then combined. Consumes `data` while three whole lanes are left.
template <int64_t kLane>
MUSTER_CRC_TARGET uint64_t ThreeLanes(uint64_t crc, const char*& data, size_t& size) {
  while (size >= 3 * kLane) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (int64_t i = 0; i < kLane; i += 8) {
      crc = _mm_crc32_u64(crc, Load64(data + i));
      second = _mm_crc32_u64(second, Load64(data + kLane + i));
      third = _mm_crc32_u64(third, Load64(data + 2 * kLane + i));
    }
    const uint64_t before = Advance<2 * kLane>(static_cast<uint32_t>(crc)) ^
                            Advance<kLane>(static_cast<uint32_t>(second));
    crc = _mm_crc32_u64(0, before) ^ third;
    data += 3 * kLane;
    size -= 3 * kLane;
  }
  return crc;
}

MUSTER_CRC_TARGET uint32_t ExtendWithInstruction(uint32_t crc, absl::string_view text) {
  const char* data = text.data();
  size_t size = text.size();
  uint64_t state = ~crc;
  // Page-sized lanes suit the hardware prefetcher; the shorter ones serve short records.
  state = ThreeLanes<4096>(state, data, size);
  state = ThreeLanes<256>(state, data, size);
  state = ThreeLanes<64>(state, data, size);
  for (; size >= 8; data += 8, size -= 8) state = _mm_crc32_u64(state, Load64(data));
  auto low = static_cast<uint32_t>(state);
  for (; size > 0; ++data, --size) low = _mm_crc32_u8(low, static_cast<uint8_t>(*data));
  return ~low;
}

#endif

}  // namespace

namespace internal {

uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view text) {
  const char* data = text.data();
  size_t size = text.size();
  uint32_t state = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = Load64(data) ^ state;
    state = 0;
#pragma GCC unroll 8
    for (int byte = 0; byte < 8; ++byte) state ^= kTables[7 - byte][(word >> (8 * byte)) & 0xff];
  }
  for (; size > 0; ++data, --size) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint8_t>(*data)) & 0xff];
  }
  return ~state;
}

}  // namespace internal

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
#if defined(__x86_64__)
  static const bool kHasInstruction =
      __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  if (kHasInstruction) return ExtendWithInstruction(crc, data);
#endif
  return internal::ExtendCrc32cPortable(crc, data);
}

uint32_t ConcatCrc32c(uint32_t first, uint32_t second, int64_t second_bytes) {
  // Multiplies `first` by x^(8 · second_bytes), by repeated squaring.
  uint32_t power = 0x00800000;  // x^8
  for (int64_t left = second_bytes; left > 0; left >>= 1, power = Times(power, power)) {
    if ((left & 1) != 0) first = Times(first, power);
  }
  return first ^ second;
}

}  // namespace muster::base
