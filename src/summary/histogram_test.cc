#include "summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::summary {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kMaxDouble = std::numeric_limits<double>::max();

Histogram Make(const std::vector<float>& values) {
  int64_t non_finite = 0;
  Histogram histogram = MakeHistogram(values, non_finite);
  EXPECT_EQ(non_finite, 0);
  return histogram;
}

// Counts the values in each bucket one by one.
std::vector<double> Count(const std::vector<float>& values, const std::vector<double>& limits) {
  std::vector<double> counts(limits.size());
  for (const float value : values) {
    counts[std::upper_bound(limits.begin(), limits.end(), value) - limits.begin()] += 1;
  }
  return counts;
}

TEST(HistogramTest, CountsEveryValueInItsBucket) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-45, 38);
  std::vector<float> values = {0,
                               -0.0F,
                               1e-12F,
                               -1e-12F,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest(),
                               std::numeric_limits<float>::denorm_min(),
                               -std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < 20'000; ++i) {
    values.push_back((i % 2 == 0 ? 1.0F : -1.0F) * std::pow(10.0F, exponent(random)));
  }
  const Histogram histogram = Make(values);
  EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  EXPECT_EQ(histogram.counts, Count(values, histogram.limits));
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0),
            static_cast<double>(values.size()));
}

TEST(HistogramTest, AValueOnABorderIsInTheUpperBucket) {
  double limit = 1e-12;
  while (limit * 1.1 < 1.0) limit *= 1.1;
  // The border just below one, as the nearest floats on both sides of it.
  const auto below = std::nextafter(static_cast<float>(limit), 0.0F);
  const auto above = std::nextafter(static_cast<float>(limit), 2.0F);
  const Histogram histogram = Make({below, above});
  EXPECT_THAT(histogram.limits, ElementsAre(testing::_, limit, limit * 1.1, kMaxDouble));
  EXPECT_THAT(histogram.counts, ElementsAre(0, 1, 1, 0));
}

TEST(HistogramTest, RunsOfEmptyBucketsAreOne) {
  const Histogram histogram = Make({0, 0, 0});
  EXPECT_THAT(histogram.limits, ElementsAre(0, 1e-12, kMaxDouble));
  EXPECT_THAT(histogram.counts, ElementsAre(0, 3, 0));
}

TEST(HistogramTest, StoresMoments) {
  const Histogram histogram = Make({1, -3, 2});
  EXPECT_EQ(histogram.min, -3);
  EXPECT_EQ(histogram.max, 2);
  EXPECT_EQ(histogram.count, 3);
  EXPECT_EQ(histogram.sum, 0);
  EXPECT_EQ(histogram.sum_of_squares, 14);
}

TEST(HistogramTest, NonFiniteValuesAreCountedSeparately) {
  const std::vector<float> values = {1, kInfinity, -kInfinity, std::nanf(""), -std::nanf(""), 2};
  int64_t non_finite = 0;
  const Histogram histogram = MakeHistogram(values, non_finite);
  EXPECT_EQ(non_finite, 4);
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.sum, 3);
  EXPECT_EQ(histogram.max, 2);
}

TEST(HistogramTest, NoValuesAreOneEmptyBucket) {
  const Histogram histogram = Make({});
  EXPECT_EQ(histogram.count, 0);
  EXPECT_EQ(histogram.min, 0);
  EXPECT_EQ(histogram.max, 0);
  EXPECT_THAT(histogram.counts, ElementsAre(0));
  EXPECT_THAT(histogram.limits, ElementsAre(kMaxDouble));
}

}  // namespace
}  // namespace muster::summary
