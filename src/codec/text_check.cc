#include "codec/text_check.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace muster::codec {
namespace {

Mark MarkAt(absl::string_view text, size_t position) {
  const absl::string_view before = text.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  return {static_cast<int>(line), static_cast<int>(position - start) + 1};
}

// The length of the well-formed UTF-8 sequence that `text` begins with; 0 when there is none.
// Overlong forms, surrogates and what lies beyond U+10FFFF are not well-formed.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char next = byte(1);
  if (lead == 0xE0 && next < 0xA0) return 0;
  if (lead == 0xED && next > 0x9F) return 0;
  if (lead == 0xF0 && next < 0x90) return 0;
  if (lead == 0xF4 && next > 0x8F) return 0;
  return length;
}

bool IsForbiddenControl(unsigned char c) {
  return c == 0x7F || (c < 0x20 && c != '\t' && c != '\n' && c != '\r');
}

}  // namespace

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool CheckText(absl::string_view text, Diagnostics& diagnostics) {
  if (absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF")) {
    diagnostics.Add({}, "the text is UTF-16; save it as UTF-8");
    return false;
  }
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (IsForbiddenControl(byte)) {
      diagnostics.Add(
          MarkAt(text, i),
          absl::StrFormat("the control character 0x%02x is not allowed; is this a text file?",
                          static_cast<int>(byte)));
      return false;
    }
    const size_t length = SequenceLength(text.substr(i));
    if (length == 0) {
      diagnostics.Add(MarkAt(text, i),
                      absl::StrFormat("the byte 0x%02x is not valid UTF-8; save the "
                                      "file as UTF-8",
                                      static_cast<int>(byte)));
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace muster::codec
