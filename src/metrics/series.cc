#include "metrics/series.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace muster::metrics {

void AddPoint(Series& series, absl::string_view name, const Point& point) {
  std::vector<Point>& points = series[std::string(name)];
  while (!points.empty() && points.back().step >= point.step) points.pop_back();
  points.push_back(point);
}

Extremes ExtremesOf(const std::vector<Point>& points) {
  Extremes result{.last = points.back(), .min = points.back(), .max = points.back()};
  for (const Point& point : points) {
    if (std::isnan(point.value)) continue;
    if (std::isnan(result.min.value) || point.value < result.min.value) result.min = point;
    if (std::isnan(result.max.value) || point.value > result.max.value) result.max = point;
  }
  return result;
}

bool IsHigherBetter(absl::string_view name) {
  static constexpr std::array<absl::string_view, 14> kWords = {
      "acc", "accuracy",  "auc",    "bleu",   "examples", "f1",   "iou",
      "map", "precision", "recall", "reward", "score",    "top1", "top5"};
  const std::string lower = absl::AsciiStrToLower(name.substr(name.rfind('/') + 1));
  for (const absl::string_view word : absl::StrSplit(lower, absl::ByAnyChar("_-. "))) {
    if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  }
  return false;
}

}  // namespace muster::metrics
