#include "codec/text_check.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/text/utf8.h"

namespace muster::codec {
namespace {

Mark MarkAt(absl::string_view text, size_t position) {
  const absl::string_view before = text.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  return {static_cast<int>(line), static_cast<int>(position - start) + 1};
}

bool IsForbiddenControl(unsigned char c) {
  return c == 0x7F || (c < 0x20 && c != '\t' && c != '\n' && c != '\r');
}

}  // namespace

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
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
    const size_t length = base::DecodeUtf8(text.substr(i)).bytes;
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
