// The order in which an epoch visits the examples.
#pragma once

#include <cstdint>

namespace muster::data {

// A pseudo-random bijection of 0 … size - 1, determined by seed and epoch. Computes one position at
// a time and stores nothing: an epoch starts without delay however large the data set, and any
// thread may query any position at any time.
//
// A Feistel network: a number is left + rows * right, with rows * columns just above `size`. In
// eight rounds, a hash of right is added to left (modulo rows), then a hash of left to right
// (modulo columns). Each round is invertible, so together they are a bijection of rows * columns
// numbers. A result of `size` or above is permuted again until it is below (cycle walking).
//
// The order must never change: a resumed run would read other examples.
class Permutation {
 public:
  // REQUIRES: `size` >= 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);

  // REQUIRES: 0 <= `position` < size.
  int64_t operator()(int64_t position) const;

 private:
  uint64_t size_;
  uint64_t rows_;
  uint64_t columns_;
  uint64_t key_;
};

}  // namespace muster::data
