// The order in which an epoch visits the examples.
#pragma once

#include <cstdint>

namespace muster::data {

// A random-looking bijection of 0 … size - 1, chosen by seed and epoch. It is computed for one
// position at a time and keeps nothing: an epoch begins without a pause, however large the data
// set, and every position can be asked for at any time, from any thread.
//
// How: a number is written as left + rows * right, with rows * columns just above `size`. In eight
// rounds, left is moved (modulo rows) by a hash of right, then right (modulo columns) by a hash of
// left. Each round can be undone, so all of them together are a bijection of rows * columns
// numbers; one that lands at `size` or above goes through it again until it lands below.
//
// The order is part of what a run is: a resumed run would see other examples if it changed.
class Permutation {
 public:
  // `size` is at least 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);

  // `position` is from 0 to size - 1.
  int64_t operator()(int64_t position) const;

 private:
  uint64_t size_;
  uint64_t rows_;
  uint64_t columns_;
  uint64_t key_;
};

}  // namespace muster::data
