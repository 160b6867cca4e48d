// Pages through the merged logs of tasks in both directions, without reading them from the start.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "supervise/log/filtered_log.h"
#include "supervise/log/log_reader.h"

namespace muster::supervise {

// A position in each of several logs. A task that is absent is at the start of its log.
using LogCursor = std::map<cluster::TaskId, LogPosition>;

// Returns text for a client to keep, and its inverse. ParseLogCursor() returns InvalidArgument for
// other texts.
std::string FormatLogCursor(const LogCursor& cursor);
absl::StatusOr<LogCursor> ParseLogCursor(absl::string_view text);

struct LogPageQuery {
  std::string directory;               // of the logs
  std::vector<cluster::TaskId> tasks;  // whose lines are wanted
  LogCondition condition;              // null = all lines
  int limit = 500;                     // of lines
  int64_t max_bytes = 64 << 20;        // of logs to read
  // The tasks have ended: bytes after the last line end are a line.
  bool complete = false;
};

struct LogPage {
  std::vector<LogLine> lines;  // oldest first
  LogCursor older, newer;      // before the first and after the last line that was examined
  bool at_start = false;       // no line is older
  bool at_end = false;         // no line is newer yet
};

// Returns the last lines that match before `cursor`; nullopt = at the end. A page may have fewer
// lines than the limit, even none, if reading them took `max_bytes`: read on from its cursor.
LogPage ReadOlderLines(const LogPageQuery& query, const std::optional<LogCursor>& cursor);
// Returns the first lines that match after `cursor`.
LogPage ReadNewerLines(const LogPageQuery& query, const LogCursor& cursor);

}  // namespace muster::supervise
