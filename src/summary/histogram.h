// Histograms with TensorFlow's buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster::summary {

struct Histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  // counts[i] values lie in [limits[i - 1], limits[i]). Adjacent empty buckets are merged; there is
  // at least one bucket.
  std::vector<double> limits;
  std::vector<double> counts;

  friend bool operator==(const Histogram&, const Histogram&) = default;
};

// Returns the histogram of `values`. Bucket limits are 0 and ±1e-12 · 1.1^k up to 1e20. Infinities
// and NaN are left out and counted in `non_finite`.
Histogram MakeHistogram(absl::Span<const float> values, int64_t& non_finite);

}  // namespace muster::summary
