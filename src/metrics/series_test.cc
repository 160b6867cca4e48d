#include "metrics/series.h"

#include <cmath>

#include "gmock/gmock.h"

namespace muster::metrics {
namespace {

using testing::ElementsAre;

TEST(SeriesTest, ARestartReplacesTheStepsThatItRepeats) {
  Series series;
  const absl::Time time = absl::UnixEpoch();
  for (const int64_t step : {10, 20, 30}) AddPoint(series, "loss", {step, time, 1});
  AddPoint(series, "loss", {20, time, 2});
  EXPECT_THAT(series["loss"], ElementsAre(Point{10, time, 1}, Point{20, time, 2}));
}

TEST(SeriesTest, ExtremesIgnoreNan) {
  const absl::Time time = absl::UnixEpoch();
  const Extremes extremes =
      ExtremesOf({{1, time, 3}, {2, time, -1}, {3, time, 7}, {4, time, std::nan("")}});
  EXPECT_EQ(extremes.min.step, 2);
  EXPECT_EQ(extremes.max.step, 3);
  EXPECT_TRUE(std::isnan(extremes.last.value));
  EXPECT_TRUE(std::isnan(ExtremesOf({{1, time, std::nan("")}}).min.value));
}

TEST(SeriesTest, TheNameDecidesWhichValueIsBest) {
  EXPECT_TRUE(IsHigherBetter("eval/Accuracy"));
  EXPECT_TRUE(IsHigherBetter("f1_score"));
  EXPECT_TRUE(IsHigherBetter("top1"));
  EXPECT_TRUE(IsHigherBetter("examples_per_second"));
  EXPECT_FALSE(IsHigherBetter("loss"));
  EXPECT_FALSE(IsHigherBetter("accumulated_loss"));
  EXPECT_FALSE(IsHigherBetter("f1-run/loss"));
  EXPECT_FALSE(IsHigherBetter("perplexity"));
}

}  // namespace
}  // namespace muster::metrics
