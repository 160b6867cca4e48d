#include "train/core/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace muster::train {
namespace {

constexpr int kAll = 1 << 16;
// Blocks of eight use the processor's conversion if it has one, single values never do.
constexpr int64_t kFast = 8;

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves(kAll);
  for (int i = 0; i < kAll; ++i) halves[i] = static_cast<uint16_t>(i);
  return halves;
}

// Decodes a half by the definition of the format.
double Meaning(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 0x1f) {
    return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// The nearest half by comparing with both neighbours, ties to the even one.
uint16_t Nearest(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  uint16_t below = 0;
  for (uint16_t bit = 0x4000; bit != 0; bit >>= 1) {
    const uint16_t candidate = below | bit;
    if (candidate <= 0x7bff && Meaning(candidate) <= magnitude) below = candidate;
  }
  const double low = Meaning(below);
  // The next step beyond the largest value stands for infinity.
  const double high = below == 0x7bff ? 65536.0 : Meaning(below + 1);
  if (magnitude - low < high - magnitude) return sign | below;
  if (magnitude - low > high - magnitude) return sign | (below + 1);
  return sign | (below % 2 == 0 ? below : below + 1);
}

uint16_t Scalar(float value) {
  uint16_t half;
  ToFloat16(&value, &half, 1);
  return half;
}

std::vector<float> InterestingFloats() {
  std::vector<float> values;
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  // Around every half, and between each two.
  for (int i = 0; i < 0x7bff; ++i) {
    const auto half = static_cast<float>(Meaning(static_cast<uint16_t>(i)));
    const auto tie = static_cast<float>(
        (Meaning(static_cast<uint16_t>(i)) + Meaning(static_cast<uint16_t>(i + 1))) / 2);
    for (const float at : {half, tie}) {
      values.insert(values.end(), {at, -at, std::nextafter(at, 1e9F), std::nextafter(at, -1e9F)});
    }
  }
  for (const float special :
       {65504.0F, 65519.99F, 65520.0F, 65536.0F, 1e30F, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::denorm_min(), 0.0F}) {
    values.insert(values.end(), {special, -special});
  }
  while (values.size() % kFast != 0) values.push_back(0);
  return values;
}

TEST(Float16, EveryHalfDecodesAsDefined) {
  const std::vector<uint16_t> halves = AllHalves();
  std::vector<float> floats(kAll);
  FromFloat16(halves.data(), floats.data(), kAll);
  for (int i = 0; i < kAll; ++i) {
    float scalar;
    FromFloat16(&halves[i], &scalar, 1);
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(scalar)) << i;
    const double meaning = Meaning(halves[i]);
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
    } else {
      ASSERT_EQ(floats[i], meaning) << i;
      ASSERT_EQ(std::signbit(floats[i]), std::signbit(meaning)) << i;
    }
  }
}

TEST(Float16, EveryHalfRoundTrips) {
  const std::vector<uint16_t> halves = AllHalves();
  std::vector<float> floats(kAll);
  std::vector<uint16_t> back(kAll);
  FromFloat16(halves.data(), floats.data(), kAll);
  ToFloat16(floats.data(), back.data(), kAll);
  for (int i = 0; i < kAll; ++i) {
    // A signalling NaN comes back quiet.
    const bool nan = (i & 0x7fff) > 0x7c00;
    ASSERT_EQ(back[i], nan ? i | 0x200 : i);
  }
}

TEST(Float16, RoundsToTheNearest) {
  for (const float value : InterestingFloats()) {
    if (std::isnan(value)) {
      EXPECT_GT(Scalar(value) & 0x7fff, 0x7c00);
    } else {
      ASSERT_EQ(Scalar(value), Nearest(value)) << value;
    }
  }
}

TEST(Float16, TheProcessorsConversionGivesTheSameBits) {
  const std::vector<float> values = InterestingFloats();
  std::vector<uint16_t> fast(values.size());
  ToFloat16(values.data(), fast.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(fast[i], Scalar(values[i])) << std::bit_cast<uint32_t>(values[i]);
  }
}

TEST(Float16, AnyLengthAndAlignment) {
  std::vector<float> values(40);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.37F * static_cast<float>(i);
  for (int64_t n = 0; n <= 40; ++n) {
    std::vector<std::byte> memory(2 * 40 + 2, std::byte{0xaa});
    ToFloat16(values.data(), memory.data() + 1, n);
    EXPECT_EQ(memory[0], std::byte{0xaa});
    EXPECT_EQ(memory[1 + 2 * n], std::byte{0xaa});
    std::vector<float> back(41, -1);
    FromFloat16(memory.data() + 1, back.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(back[i], values[i], values[i] / 1024);
    EXPECT_EQ(back[n], -1);
  }
}

TEST(Bfloat16, EveryValueRoundTrips) {
  const std::vector<uint16_t> all = AllHalves();
  std::vector<float> floats(kAll);
  std::vector<uint16_t> back(kAll);
  FromBfloat16(all.data(), floats.data(), kAll);
  ToBfloat16(floats.data(), back.data(), kAll);
  for (int i = 0; i < kAll; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), static_cast<uint32_t>(i) << 16);
    const bool nan = (i & 0x7fff) > 0x7f80;
    ASSERT_EQ(back[i], nan ? i | 0x40 : i);
  }
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  for (const float value : InterestingFloats()) {
    uint16_t rounded;
    ToBfloat16(&value, &rounded, 1);
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) {
      EXPECT_GT(rounded & 0x7fff, 0x7f80);
      continue;
    }
    const uint32_t rest = bits & 0xffff;
    const uint32_t down = bits >> 16;
    const bool up = rest > 0x8000 || (rest == 0x8000 && down % 2 == 1);
    ASSERT_EQ(rounded, down + (up ? 1 : 0)) << value;
  }
}

TEST(Bfloat16, TooLargeValuesBecomeInfinite) {
  const float largest = std::numeric_limits<float>::max();
  uint16_t rounded;
  ToBfloat16(&largest, &rounded, 1);
  EXPECT_EQ(rounded, 0x7f80);
}

}  // namespace
}  // namespace muster::train
