// What must hold of a text before a YAML scanner may see it.
#pragma once

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"

namespace muster::codec {

// True when `text` is UTF-8 without control characters but tab and line ends. Otherwise the first
// offence is a diagnostic. `text` is without a byte order mark.
bool CheckText(absl::string_view text, Diagnostics& diagnostics);

// Takes a UTF-8 byte order mark off `text`.
absl::string_view WithoutByteOrderMark(absl::string_view text);

}  // namespace muster::codec
