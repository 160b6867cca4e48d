// Comma-separated values (RFC 4180).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::data {

struct CsvRow {
  int64_t line = 0;  // where it begins, counted from 1
  std::vector<std::string> cells;
};

// Lines that are empty are passed over; a byte-order mark too. InvalidArgument, with the line, for
// a quote that is not closed or has something behind it.
absl::StatusOr<std::vector<CsvRow>> ParseCsv(absl::string_view text);

}  // namespace muster::data
