// Validates text before it reaches the YAML scanner.
#pragma once

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"

namespace muster::codec {

// Returns true if `text` is UTF-8 without control characters other than tab and line ends.
// Otherwise reports the first violation. REQUIRES: `text` has no byte order mark.
bool CheckText(absl::string_view text, Diagnostics& diagnostics);

// Returns `text` without a leading UTF-8 byte order mark.
absl::string_view WithoutByteOrderMark(absl::string_view text);

}  // namespace muster::codec
