// Selects lines of a job's output by what a user asks for.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "supervise/log/filtered_log.h"

namespace muster::jobs {

struct LogQuery {
  std::string pattern;         // an extended regular expression, as for grep -E; "" = all lines
  std::optional<int> attempt;  // counted from 1, as in messages

  bool empty() const { return pattern.empty() && !attempt.has_value(); }
};

// Returns the condition on lines, or InvalidArgument if the pattern is malformed or the attempt is
// not positive. The pattern is matched against the text of a line, byte by byte.
absl::StatusOr<supervise::LogCondition> MakeLogCondition(const LogQuery& query);

}  // namespace muster::jobs
