// JSON that others have written.
#pragma once

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster {

// Copying, comparing and writing a document are recursive: a deeper one could exhaust the stack.
inline constexpr int kMaxJsonDepth = 256;

// Whether the objects and arrays of a text nest deeper than `depth`. The text need not be valid.
bool NestsDeeperThan(absl::string_view text, int depth);

// The document; discarded (not an object, for one) when the text is not valid JSON or nests deeper
// than `depth`.
nlohmann::json ParseJson(absl::string_view text, int depth = kMaxJsonDepth);

}  // namespace muster
