#include "base/text/utf8.h"

namespace muster::base {

CodePoint DecodeUtf8(absl::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  uint32_t code = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, length};
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = DecodeUtf8(text).bytes;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace muster::base
