#include "metrics/down_sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::metrics {
namespace {

// Appends the smallest and the largest of points[begin, end), in their order.
void AppendExtremes(const std::vector<Point>& points, size_t begin, size_t end,
                    std::vector<Point>& result) {
  size_t least = end, greatest = end;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points[i].value)) continue;
    if (least == end || points[i].value < points[least].value) least = i;
    if (greatest == end || points[i].value > points[greatest].value) greatest = i;
  }
  if (least == end) {
    result.push_back(points[begin]);
    return;
  }
  const auto [first, second] = std::minmax(least, greatest);
  result.push_back(points[first]);
  if (second != first) result.push_back(points[second]);
}

}  // namespace

std::vector<Point> DownSample(const std::vector<Point>& points, size_t max_points) {
  if (points.size() <= max_points) return points;
  std::vector<Point> result;
  result.reserve(max_points);
  result.push_back(points.front());
  const size_t ranges = (max_points - 2) / 2;
  const size_t inner = points.size() - 2;
  for (size_t i = 0; i < ranges; ++i) {
    AppendExtremes(points, 1 + i * inner / ranges, 1 + (i + 1) * inner / ranges, result);
  }
  result.push_back(points.back());
  return result;
}

}  // namespace muster::metrics
