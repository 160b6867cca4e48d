// Parses untrusted JSON.
#pragma once

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster {

// nlohmann-json copies, compares and prints recursively, so a deeper document could exhaust the
// stack.
inline constexpr int kMaxJsonDepth = 256;

// Returns true if the objects and arrays in `text` nest deeper than `depth`. The text need not be
// valid JSON.
bool NestsDeeperThan(absl::string_view text, int depth);

// Returns the document. Returns a discarded value (is_discarded(); no is_object(), is_array(), …
// holds) if the text is not valid JSON or nests deeper than `depth`.
nlohmann::json ParseJson(absl::string_view text, int depth = kMaxJsonDepth);

}  // namespace muster
