// How people write and read time and size.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// "90s", "1h30m", "250ms", "2d"; a bare number is seconds. Never negative.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);
// The shortest exact form that ParseDuration reads back: "1h30m".
std::string DurationToString(absl::Duration duration);

// "512", "64KiB", "16Gi", "1.5G"; K, M, G, T, P count in 1024s.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// Three figures at most: "1.5GiB".
std::string FormatBytes(int64_t bytes);

// "1 task", "2 tasks", "3 processes".
std::string Plural(int64_t count, absl::string_view noun);

// For people: "1.4s", "12s", "3m05s", "2h14m", "5d03h".
std::string FormatElapsed(absl::Duration duration);
// "2 minutes ago", "just now".
std::string FormatAge(absl::Duration age);
// Local time: "2026-11-15 21:07:36".
std::string FormatLocalTime(absl::Time time);

}  // namespace muster
