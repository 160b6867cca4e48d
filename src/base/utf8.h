// Text in UTF-8, as strictly as Unicode has it: no overlong forms, no surrogates, nothing beyond
// U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// The code point that `text`, which is not empty, begins with, and how many bytes it takes: 0 when
// they are not valid.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;
};
CodePoint DecodeUtf8(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace muster
