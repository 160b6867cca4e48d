#include "metrics/series.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

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
  const std::string lower = absl::AsciiStrToLower(name);
  for (const absl::string_view word :
       {"acc", "auc", "f1", "precision", "recall", "bleu", "score", "reward", "examples"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

}  // namespace muster::metrics
