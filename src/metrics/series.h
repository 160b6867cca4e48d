// Metrics of a run: values by step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::metrics {

struct Point {
  int64_t step = 0;
  absl::Time time;   // InfinitePast if unknown
  double value = 0;  // may be NaN or infinite
  bool operator==(const Point&) const = default;
};

// The points of every metric, by name. Steps ascend strictly.
using Series = std::map<std::string, std::vector<Point>, std::less<>>;

// Appends a point. Points of the same or later steps are dropped first: a task that restarts from a
// checkpoint repeats steps, and the later values are those of the model that was kept.
void AddPoint(Series& series, absl::string_view name, const Point& point);

// The values of a metric that a table shows.
struct Extremes {
  Point last;
  Point min, max;  // of the values that are not NaN; equal to `last` if all of them are
};

// REQUIRES: `points` is not empty.
Extremes ExtremesOf(const std::vector<Point>& points);

// Returns true if larger values of the metric are better, by its name: an accuracy, a score.
bool IsHigherBetter(absl::string_view name);

}  // namespace muster::metrics
