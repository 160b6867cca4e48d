// Random numbers that depend only on a key: the same on every machine, with every compiler and
// library. They must never change, since runs are repeated and resumed with them.
#pragma once

#include <cstdint>

namespace muster::data {

// A bijection of 64 bits in which every input bit flips about half of the output bits: the output
// function of SplitMix64.
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Combines two keys into one.
constexpr uint64_t Key(uint64_t key, uint64_t part) {
  return Mix(Mix(key + 0x9e3779b97f4a7c15u) + part * 0xd1342543de82ef95u);
}

// Maps 64 random bits to a number from 0 to limit - 1.
constexpr uint64_t Below(uint64_t bits, uint64_t limit) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * limit) >> 64);
}

// SplitMix64, seeded with a key.
class Random {
 public:
  explicit constexpr Random(uint64_t key) : state_(key) {}

  constexpr uint64_t Bits() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  constexpr int64_t Below(int64_t limit) {
    return static_cast<int64_t>(data::Below(Bits(), static_cast<uint64_t>(limit)));
  }
  // Returns a number from -1 to 1.
  constexpr float Uniform() {
    return static_cast<float>(static_cast<int64_t>(Bits() >> 40) - (int64_t{1} << 23)) * 0x1p-23f;
  }
  // Returns an approximately normal number with mean 0 and deviation 1: the sum of four uniform
  // 16-bit integers, so that rounding is the same on every machine.
  constexpr float Normal() {
    const uint64_t bits = Bits();
    const auto sum = static_cast<int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                          ((bits >> 32) & 0xffff) + (bits >> 48));
    constexpr float kScale = 1.7320508f / 65536;  // the deviation of the sum is 65536 / sqrt(3)
    return static_cast<float>(sum - 2 * 65535) * kScale;
  }

 private:
  uint64_t state_;
};

}  // namespace muster::data
