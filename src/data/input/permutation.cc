#include "data/input/permutation.h"

#include "data/input/random.h"

namespace muster::data {
namespace {

constexpr uint64_t kRounds = 8;

// Returns the smallest number whose square is at least `size`.
uint64_t RootUp(uint64_t size) {
  uint64_t low = 1;
  uint64_t high = uint64_t{1} << 32;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    // middle² may overflow, so this tests middle >= size / middle, rounded up.
    if (middle >= size / middle + (size % middle != 0)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(static_cast<uint64_t>(size)),
      rows_(RootUp(size_)),
      columns_(size_ / rows_ + (size_ % rows_ != 0)),
      key_(Key(seed, epoch)) {}

int64_t Permutation::operator()(int64_t position) const {
  auto value = static_cast<uint64_t>(position);
  do {
    uint64_t left = value % rows_;
    uint64_t right = value / rows_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const bool move_left = round % 2 == 0;
      const uint64_t hash = Mix(Mix(key_ + round) ^ (move_left ? right : left));
      uint64_t& moved = move_left ? left : right;
      const uint64_t modulus = move_left ? rows_ : columns_;
      moved += Below(hash, modulus);
      if (moved >= modulus) moved -= modulus;
    }
    value = left + rows_ * right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace muster::data
