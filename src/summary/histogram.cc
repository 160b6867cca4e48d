#include "summary/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace muster::summary {
namespace {

// Finds the bucket of a float by table lookup. The key is the sign, the exponent and the first four
// bits of the mantissa. Floats with the same key differ by less than 1/16 and buckets are 1/10
// wide, so the right bucket is the table entry or the next one.
class Buckets {
 public:
  Buckets() {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) {
      limits_.push_back(-*limit);
    }
    limits_.push_back(0);
    limits_.insert(limits_.end(), positive.begin(), positive.end());
    for (uint32_t key = 0; key < first_.size(); ++key) first_[key] = Search(SmallestOf(key));
  }

  const std::vector<double>& limits() const { return limits_; }

  // Returns the index of the bucket. REQUIRES: `value` is finite.
  size_t Find(float value) const {
    size_t bucket = first_[std::bit_cast<uint32_t>(value) >> kDroppedBits];
    while (limits_[bucket] <= value) ++bucket;
    return bucket;
  }

 private:
  static constexpr int kDroppedBits = 19;  // low bits of a float that are not in its key

  // Returns the smallest finite float with that key.
  static float SmallestOf(uint32_t key) {
    const bool negative = (key >> (31 - kDroppedBits)) != 0;
    const uint32_t rest = negative ? (1U << kDroppedBits) - 1 : 0;
    const float value = std::bit_cast<float>((key << kDroppedBits) | rest);
    if (std::isfinite(value)) return value;
    return negative ? std::numeric_limits<float>::lowest() : 0;
  }

  uint16_t Search(float value) const {
    return static_cast<uint16_t>(std::upper_bound(limits_.begin(), limits_.end(), value) -
                                 limits_.begin());
  }

  std::vector<double> limits_;
  std::array<uint16_t, (1U << (32 - kDroppedBits))> first_;
};

const Buckets& TensorFlowBuckets() {
  static const auto& kBuckets = *new Buckets;
  return kBuckets;
}

}  // namespace

Histogram MakeHistogram(absl::Span<const float> values, int64_t& non_finite) {
  const Buckets& buckets = TensorFlowBuckets();
  const std::vector<double>& limits = buckets.limits();
  std::vector<int64_t> counts(limits.size());
  Histogram result;
  float min = std::numeric_limits<float>::max();
  float max = std::numeric_limits<float>::lowest();
  non_finite = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++non_finite;
      continue;
    }
    ++counts[buckets.Find(value)];
    min = std::min(min, value);
    max = std::max(max, value);
    result.sum += value;
    result.sum_of_squares += static_cast<double>(value) * value;
  }
  result.count = static_cast<double>(values.size()) - static_cast<double>(non_finite);
  if (result.count > 0) {
    result.min = min;
    result.max = max;
  }
  for (size_t i = 0; i < limits.size(); ++i) {
    const bool empty = counts[i] == 0;
    if (empty && !result.counts.empty() && result.counts.back() == 0) {
      result.limits.back() = limits[i];
      continue;
    }
    result.limits.push_back(limits[i]);
    result.counts.push_back(static_cast<double>(counts[i]));
  }
  return result;
}

}  // namespace muster::summary
