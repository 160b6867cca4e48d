#include "data/resize.h"

#include <numeric>

#include "gmock/gmock.h"

namespace muster::data {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(ResizeTest, TheSameSizeKeepsEveryPixel) {
  std::vector<uint8_t> pixels(5 * 7 * 3);
  std::iota(pixels.begin(), pixels.end(), 100);
  EXPECT_EQ(ResizeImage(pixels, {5, 7}, {5, 7}, 3), pixels);
}

TEST(ResizeTest, InterpolatesBetweenPixels) {
  EXPECT_THAT(ResizeImage(std::vector<uint8_t>{0, 100}, {1, 2}, {1, 4}, 1),
              ElementsAre(0, 25, 75, 100));
}

TEST(ResizeTest, ShrinkingCountsEveryPixel) {
  // A line of one pixel does not disappear, wherever it is.
  for (size_t at = 0; at < 64; ++at) {
    std::vector<uint8_t> pixels(64, 0);
    pixels[at] = 255;
    const auto small = ResizeImage(pixels, {1, 64}, {1, 4}, 1);
    const int sum = std::accumulate(small.begin(), small.end(), 0);
    EXPECT_TRUE(sum >= 8 && sum <= 24) << at << ": " << sum;
  }
}

TEST(ResizeTest, ChannelsStayApart) {
  const std::vector<uint8_t> pixels = {10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30};
  EXPECT_THAT(ResizeImage(pixels, {2, 2}, {1, 1}, 3), ElementsAre(10, 20, 30));
  EXPECT_THAT(ResizeImage(std::vector<uint8_t>(1000 * 30, 200), {1000, 30}, {3, 50}, 1), Each(200));
}

}  // namespace
}  // namespace muster::data
