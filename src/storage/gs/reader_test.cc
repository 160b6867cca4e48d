#include "storage/gs/reader.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/bytes/crc32c.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

std::string Noise(size_t bytes) {
  std::mt19937 random(1);
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  return noise;
}

TEST(RangeSumsTest, PiecesMayArriveInAnyOrder) {
  const std::string content = Noise(10'000);
  const absl::string_view view = content;
  std::mt19937 random(2);
  RangeSums sums(10'000);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> cuts = {0, 10'000};
    for (int i = 0; i < 30; ++i) cuts.push_back(static_cast<int64_t>(random() % 10'000));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<size_t> order(cuts.size() - 1);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto begin = static_cast<size_t>(cuts[order[i]]);
      const auto end = static_cast<size_t>(cuts[order[i] + 1]);
      const auto sum = sums.Add(static_cast<int64_t>(begin), view.substr(begin, end - begin));
      ASSERT_EQ(sum.has_value(), i + 1 == order.size());
      if (sum.has_value()) {
        EXPECT_EQ(*sum, base::Crc32c(content));
      }
    }
  }
}

TEST(RangeSumsTest, RepeatedPiecesCountOnce) {
  RangeSums sums(6);
  EXPECT_FALSE(sums.Add(0, "ab").has_value());
  EXPECT_FALSE(sums.Add(0, "ab").has_value());
  EXPECT_FALSE(sums.Add(1, "bc").has_value());
  EXPECT_FALSE(sums.Add(4, "ef").has_value());
  EXPECT_FALSE(sums.Add(3, "def").has_value());
  EXPECT_EQ(sums.Add(2, "cd"), base::Crc32c("abcdef"));
  EXPECT_EQ(sums.Add(0, "abcdef"), base::Crc32c("abcdef"));
}

TEST(RangeSumsTest, ManyThreads) {
  const std::string content = Noise(64'000);
  RangeSums sums(64'000);
  std::atomic<int> whole = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = thread; i < 64; i += 4) {
          const auto at = static_cast<size_t>(i) * 1000;
          const auto sum = sums.Add(i * 1000, absl::string_view(content).substr(at, 1000));
          if (sum == base::Crc32c(content)) ++whole;
        }
      });
    }
  }
  EXPECT_EQ(whole, 1);
}

}  // namespace
}  // namespace muster::storage
