// What a task uses of its machine over a period: processor, memory, disk and network.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace muster::supervise {

// A measured quantity over the period of a sample.
struct Load {
  double mean = 0;
  double peak = 0;  // the greatest value of a single reading
  bool operator==(const Load&) const = default;
};

// One reading, or several consecutive ones merged. A quantity that could not be measured is absent.
struct Sample {
  absl::Time time;          // end of the period
  absl::Duration interval;  // the time that the readings cover; they may have gaps
  int attempt = 0;          // of the task, from 0; the latest one in the period

  std::optional<Load> cpu;       // cores in use: 1.0 = one core, all the time
  std::optional<Load> memory;    // resident bytes
  std::optional<Load> read;      // bytes per second, from disks
  std::optional<Load> written;   // bytes per second, to disks
  std::optional<Load> received;  // bytes per second, from the network
  std::optional<Load> sent;      // bytes per second, to the network
  bool operator==(const Sample&) const = default;
};

// The quantities of a sample, in the order of the sample file.
inline constexpr std::optional<Load> Sample::*kLoads[] = {&Sample::cpu,      &Sample::memory,
                                                          &Sample::read,     &Sample::written,
                                                          &Sample::received, &Sample::sent};

// Returns the sample of both periods: means weighted by their intervals, and the greater peaks.
// REQUIRES: `later` follows `earlier`.
Sample Merge(const Sample& earlier, const Sample& later);

// Merges neighbours until at most `max_count` samples are left. Each sample of the result covers
// one step of a grid over the time that the readings cover, and the step is a power of two in
// seconds. So samples that were merged before are merged further only when the step grows, and all
// of them have about the same length. REQUIRES: `max_count` > 0; samples are in order.
std::vector<Sample> Downsample(const std::vector<Sample>& samples, size_t max_count);

}  // namespace muster::supervise
