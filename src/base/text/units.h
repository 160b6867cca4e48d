// Parses and formats durations, sizes and times for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::base {

// Parses "90s", "1h30m", "250ms", "2d"; a bare number is seconds. Returns InvalidArgument for
// anything else, for negative durations and for more than a hundred years.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);
// Returns the shortest form that ParseDuration reads back, to the millisecond: "1h30m".
std::string DurationToString(absl::Duration duration);

// Parses "512", "64KiB", "16Gi", "1.5G"; K, M, G, T and P are powers of 1024.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// Returns at most four digits: "1.5GiB", "1023MiB".
std::string FormatBytes(int64_t bytes);

// Returns "1 task", "2 tasks", "3 processes".
std::string Plural(int64_t count, absl::string_view noun);

// Returns "1.4s", "12s", "3m05s", "2h14m" or "5d03h".
std::string FormatElapsed(absl::Duration duration);
// Returns "2 minutes ago" or "just now".
std::string FormatAge(absl::Duration age);
// Returns local time: "2026-11-15 21:07:36".
std::string FormatLocalTime(absl::Time time);

}  // namespace muster::base
