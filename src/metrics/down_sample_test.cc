#include "metrics/down_sample.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::metrics {
namespace {

std::vector<Point> Wave(int count) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    points.push_back({.step = i, .time = absl::FromUnixSeconds(i), .value = std::sin(i * 0.001)});
  }
  return points;
}

TEST(DownSampleTest, KeepsAShortSeries) {
  const auto points = Wave(10);
  EXPECT_EQ(DownSample(points, 10), points);
}

TEST(DownSampleTest, KeepsEndsPeaksAndOrder) {
  auto points = Wave(1'000'000);
  points[123'456].value = 100;
  points[765'432].value = -100;
  const auto few = DownSample(points, 1000);
  EXPECT_LE(few.size(), 1000U);
  EXPECT_GE(few.size(), 900U);
  EXPECT_EQ(few.front(), points.front());
  EXPECT_EQ(few.back(), points.back());
  EXPECT_THAT(few, testing::Contains(points[123'456]));
  EXPECT_THAT(few, testing::Contains(points[765'432]));
  for (size_t i = 1; i < few.size(); ++i) EXPECT_LT(few[i - 1].step, few[i].step);
}

TEST(DownSampleTest, KeepsAGapOfNaN) {
  auto points = Wave(10'000);
  for (int i = 4000; i < 6000; ++i) points[i].value = std::numeric_limits<double>::quiet_NaN();
  points[8000].value = std::numeric_limits<double>::infinity();
  int missing = 0;
  for (const Point& point : DownSample(points, 100)) missing += std::isfinite(point.value) ? 0 : 1;
  EXPECT_GT(missing, 5);
  EXPECT_LT(missing, 15);
}

TEST(DownSampleTest, AcceptsTheSmallestLimit) { EXPECT_EQ(DownSample(Wave(1000), 4).size(), 4U); }

}  // namespace
}  // namespace muster::metrics
