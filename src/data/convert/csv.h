// Comma-separated values (RFC 4180).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::data {

struct CsvRow {
  int64_t line = 0;  // its first line, counted from 1
  std::vector<std::string> cells;
};

// Skips empty lines and a byte-order mark. Returns InvalidArgument, with the line, for a quote that
// is not closed or is followed by text.
absl::StatusOr<std::vector<CsvRow>> ParseCsv(absl::string_view text);

}  // namespace muster::data
