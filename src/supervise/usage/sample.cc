#include "supervise/usage/sample.h"

#include <algorithm>
#include <cstdint>

namespace muster::supervise {
namespace {

std::optional<Load> MergeLoads(const std::optional<Load>& a, absl::Duration a_time,
                               const std::optional<Load>& b, absl::Duration b_time) {
  if (!a.has_value()) return b;
  if (!b.has_value()) return a;
  const absl::Duration time = a_time + b_time;
  const double share = time > absl::ZeroDuration() ? absl::FDivDuration(b_time, time) : 0.5;
  return Load{.mean = a->mean + (b->mean - a->mean) * share, .peak = std::max(a->peak, b->peak)};
}

// Positions on the grid count covered time, not wall time: it grows even if the clock is set back.
std::vector<Sample> MergeBySteps(const std::vector<Sample>& samples, absl::Duration step) {
  std::vector<Sample> merged;
  absl::Duration covered, remainder;
  int64_t last = -1;
  for (const Sample& sample : samples) {
    const int64_t position = absl::IDivDuration(covered, step, &remainder);
    if (position == last) {
      merged.back() = Merge(merged.back(), sample);
    } else {
      merged.push_back(sample);
    }
    last = position;
    covered += sample.interval;
  }
  return merged;
}

}  // namespace

Sample Merge(const Sample& earlier, const Sample& later) {
  Sample merged{
      .time = later.time, .interval = earlier.interval + later.interval, .attempt = later.attempt};
  for (const auto load : kLoads) {
    merged.*load = MergeLoads(earlier.*load, earlier.interval, later.*load, later.interval);
  }
  return merged;
}

std::vector<Sample> Downsample(const std::vector<Sample>& samples, size_t max_count) {
  std::vector<Sample> merged = samples;
  for (absl::Duration step = absl::Seconds(1); merged.size() > max_count; step *= 2) {
    merged = MergeBySteps(merged, step);
  }
  return merged;
}

}  // namespace muster::supervise
