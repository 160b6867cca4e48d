// JSON as every --json prints it.
#pragma once

#include "absl/strings/str_cat.h"
#include "cli/terminal.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// On one line when `indent` is -1. Bytes that are no text become U+FFFD.
template <typename Json>
void PrintJson(Terminal& out, const Json& json, int indent = 2) {
  out.PrintData(absl::StrCat(json.dump(indent, ' ', false, Json::error_handler_t::replace), "\n"));
}

}  // namespace muster::cli
