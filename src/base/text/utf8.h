// Strict UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster::base {

// A code point and its length in bytes. `bytes` is 0 if the text is not valid UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;
};
// Decodes the first code point. REQUIRES: !text.empty().
CodePoint DecodeUtf8(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace muster::base
