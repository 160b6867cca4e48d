#include "data/input/permutation.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

std::vector<int64_t> All(int64_t size, uint64_t seed, uint64_t epoch) {
  const Permutation order(size, seed, epoch);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < size; ++i) result.push_back(order(i));
  return result;
}

TEST(PermutationTest, VisitsEveryExampleOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 10, 16, 17, 99, 100, 101, 1000, 60'000}) {
    std::vector<int64_t> order = All(size, 7, 3);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> expected(static_cast<size_t>(size));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected) << size;
  }
}

TEST(PermutationTest, TheLargestDataSetWorks) {
  const Permutation order(INT64_MAX, 1, 1);
  for (const int64_t position : {int64_t{0}, int64_t{1}, INT64_MAX - 1}) {
    EXPECT_GE(order(position), 0);
    EXPECT_LT(order(position), INT64_MAX);
  }
}

TEST(PermutationTest, SeedAndEpochChangeTheOrder) {
  EXPECT_NE(All(100, 1, 0), All(100, 1, 1));
  EXPECT_NE(All(100, 1, 0), All(100, 2, 0));
  EXPECT_NE(All(100, 0, 1), All(100, 1, 0));
  EXPECT_EQ(All(100, 1, 0), All(100, 1, 0));
}

// A run that a later version resumes must get the same examples.
TEST(PermutationTest, TheOrderIsStable) {
  EXPECT_THAT(All(10, 0, 0), ElementsAre(1, 4, 0, 6, 3, 7, 5, 9, 8, 2));
  EXPECT_THAT(All(10, 42, 5), ElementsAre(7, 5, 1, 8, 0, 4, 2, 3, 9, 6));
}

// Returns Pearson's chi-squared statistic of `counts` against the uniform `expected`.
double ChiSquared(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(PermutationTest, OrdersOfAFewExamplesAreUniform) {
  constexpr int kTrials = 24 * 1000;
  std::vector<int> counts(4 * 4 * 4 * 4);
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto order = All(4, seed, 0);
    ++counts[static_cast<size_t>(((order[0] * 4 + order[1]) * 4 + order[2]) * 4 + order[3])];
  }
  std::erase(counts, 0);
  ASSERT_EQ(counts.size(), 24u);
  EXPECT_LT(ChiSquared(counts, kTrials / 24.0), 60);  // 23 degrees of freedom: p < 0.0001
}

TEST(PermutationTest, PositionsAreUniformAndNeighboursSeparate) {
  constexpr int64_t kSize = 1000;
  constexpr int kTrials = 20'000;
  std::vector<int> places(10);
  std::vector<int> distances(10);
  for (uint64_t epoch = 0; epoch < kTrials; ++epoch) {
    const Permutation order(kSize, 3, epoch);
    const int64_t first = order(500);
    ++places[static_cast<size_t>(first * 10 / kSize)];
    // The circular distance of two successive values is any of 999.
    ++distances[static_cast<size_t>(((order(501) - first + kSize) % kSize - 1) * 10 / (kSize - 1))];
  }
  EXPECT_LT(ChiSquared(places, kTrials / 10.0), 35);  // 9 degrees of freedom: p < 0.0001
  EXPECT_LT(ChiSquared(distances, kTrials / 10.0), 35);
}

}  // namespace
}  // namespace muster::data
