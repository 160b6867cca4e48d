// Reduces series for display.
#pragma once

#include <cstddef>
#include <vector>

#include "metrics/series.h"

namespace muster::metrics {

// Returns at most `max_points` of the points, in order: the first, the last, and the smallest and
// the largest value of each of equally many points in between, so that no peak is lost. Values that
// are not finite are kept only where a range has no others. REQUIRES: `max_points` >= 4.
std::vector<Point> DownSample(const std::vector<Point>& points, size_t max_points);

}  // namespace muster::metrics
