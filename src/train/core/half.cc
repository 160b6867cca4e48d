#include "train/core/half.h"

#include <immintrin.h>

#include <cstddef>
#include <cstring>

namespace muster::train {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float Float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t HalfOf(float value) {
  const uint32_t bits = Bits(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  // NaN, as F16C converts it: quiet, with the upper bits of its payload.
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 makes the addition round to the last bit of the result.
    const float shifted = Float(magnitude) + 0.5F;
    return sign | static_cast<uint16_t>(Bits(shifted) - Bits(0.5F));
  }
  // Adds just less than half of the last kept bit, or exactly half if that bit is odd: ties round
  // to even. A carry out of the mantissa increments the exponent, which is correct. 112 is the
  // difference of the exponents' biases, 127 - 15.
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1) - (112U << 23);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

float FloatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0x1f) {
    const uint32_t quiet = mantissa == 0 ? 0 : 0x400000;
    return Float(sign | 0x7f800000 | quiet | (mantissa << 13));
  }
  if (exponent == 0) return Float(sign | Bits(static_cast<float>(mantissa) * 0x1p-24F));
  return Float(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// REQUIRES: `n` is a multiple of 8, as for FromFloat16Fast.
__attribute__((target("avx,f16c"))) void ToFloat16Fast(const float* from, std::byte* to,
                                                       int64_t n) {
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), half);
  }
}

__attribute__((target("avx,f16c"))) void FromFloat16Fast(const std::byte* from, float* to,
                                                         int64_t n) {
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
}

// Every processor with AVX2 has F16C; clang's __builtin_cpu_supports does not accept "f16c".
bool HasF16c() { return __builtin_cpu_supports("avx2"); }

}  // namespace

void ToFloat16(const float* from, void* to, int64_t n) {
  auto* out = static_cast<std::byte*>(to);
  const int64_t fast = HasF16c() ? n & ~int64_t{7} : 0;
  if (fast > 0) ToFloat16Fast(from, out, fast);
  for (int64_t i = fast; i < n; ++i) {
    const uint16_t half = HalfOf(from[i]);
    std::memcpy(out + 2 * i, &half, 2);
  }
}

void FromFloat16(const void* from, float* to, int64_t n) {
  const auto* in = static_cast<const std::byte*>(from);
  const int64_t fast = HasF16c() ? n & ~int64_t{7} : 0;
  if (fast > 0) FromFloat16Fast(in, to, fast);
  for (int64_t i = fast; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, in + 2 * i, 2);
    to[i] = FloatOfHalf(half);
  }
}

void ToBfloat16(const float* from, void* to, int64_t n) {
  auto* out = static_cast<std::byte*>(to);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = Bits(from[i]);
    // Dropping the lower bits could turn a NaN into infinity; 0x40, the quiet bit, keeps it a NaN.
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    const auto half = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40
                                                : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    std::memcpy(out + 2 * i, &half, 2);
  }
}

void FromBfloat16(const void* from, float* to, int64_t n) {
  const auto* in = static_cast<const std::byte*>(from);
  for (int64_t i = 0; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, in + 2 * i, 2);
    to[i] = Float(static_cast<uint32_t>(half) << 16);
  }
}

}  // namespace muster::train
