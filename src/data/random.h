// Random numbers that depend on a key alone: the same on every machine, with every compiler and
// library. Runs are repeated and resumed with them, so they never change.
#pragma once

#include <cstdint>

namespace muster::data {

// A bijection of 64 bits in which every input bit moves about half of the output bits: the output
// function of the generator SplitMix64.
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// One key of two.
constexpr uint64_t Key(uint64_t key, uint64_t part) {
  return Mix(Mix(key + 0x9e3779b97f4a7c15u) + part * 0xd1342543de82ef95u);
}

// A number from 0 to limit - 1, from one of 64 random bits.
constexpr uint64_t Below(uint64_t bits, uint64_t limit) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * limit) >> 64);
}

// SplitMix64, begun at a key.
class Random {
 public:
  explicit constexpr Random(uint64_t key) : state_(key) {}

  constexpr uint64_t Bits() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  constexpr int64_t Below(int64_t limit) {
    return static_cast<int64_t>(data::Below(Bits(), static_cast<uint64_t>(limit)));
  }
  // From -1 to 1.
  constexpr float Uniform() {
    return static_cast<float>(static_cast<int64_t>(Bits() >> 40) - (int64_t{1} << 23)) * 0x1p-23f;
  }
  // Nearly normal, with mean 0 and deviation 1: four uniform numbers of 16 bits, added in integers
  // so that no rounding differs between machines.
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
