// Times and medians, for the benchmarks in C++.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace muster::bench {

inline double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// REQUIRES: `values` is not empty.
inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace muster::bench
