// Prints JSON for --json options.
#pragma once

#include "absl/strings/str_cat.h"
#include "cli/terminal/terminal.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Prints `json` and a newline, on one line if `indent` is -1. Invalid UTF-8 becomes U+FFFD.
template <typename Json>
void PrintJson(Terminal& out, const Json& json, int indent = 2) {
  out.PrintData(absl::StrCat(json.dump(indent, ' ', false, Json::error_handler_t::replace), "\n"));
}

}  // namespace muster::cli
