#include "base/terminal_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Decodes one code point at the start of `bytes`. Returns its length, or 0 when it is not valid
// UTF-8 (overlong forms and surrogates included).
size_t DecodeUtf8(absl::string_view bytes, uint32_t& code) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return 0;
  code = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
  return length;
}

// Length of a colour sequence at the start of `bytes`, or 0.
size_t ColourSequence(absl::string_view bytes) {
  if (bytes.size() < 3 || bytes[0] != '\x1b' || bytes[1] != '[') return 0;
  size_t i = 2;
  while (i < bytes.size() && ((bytes[i] >= '0' && bytes[i] <= '9') || bytes[i] == ';')) ++i;
  return i < bytes.size() && bytes[i] == 'm' ? i + 1 : 0;
}

int CellWidth(uint32_t code) {
  if (code < 0x20 || code == 0x7F) return 0;
  if (code < 0x300) return 1;
  const bool combining = code <= 0x36F || (code >= 0x200B && code <= 0x200F) || code == 0xFE0F;
  if (combining) return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
  return wide ? 2 : 1;
}

// Calls visit(piece, cells) for every code point or colour sequence; stops when it returns false.
template <typename Visitor>
void ForEachPiece(absl::string_view text, Visitor visit) {
  while (!text.empty()) {
    size_t length = ColourSequence(text);
    int cells = 0;
    if (length == 0) {
      uint32_t code = 0;
      length = DecodeUtf8(text, code);
      cells = length == 0 ? 1 : CellWidth(code);
      if (length == 0) length = 1;
    }
    if (!visit(text.substr(0, length), cells)) return;
    text.remove_prefix(length);
  }
}

}  // namespace

std::string Printable(absl::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    uint32_t code = 0;
    size_t length = ColourSequence(bytes);
    if (length > 0) {
      absl::StrAppend(&result, bytes.substr(0, length));
    } else if ((length = DecodeUtf8(bytes, code)) == 0) {
      absl::StrAppend(&result, kReplacement);
      length = 1;
    } else if ((code < 0x20 && code != '\t') || code == 0x7F) {
      result.push_back('^');
      result.push_back(static_cast<char>(code ^ 0x40));
    } else if (code >= 0x80 && code < 0xA0) {
      absl::StrAppend(&result, kReplacement);
    } else {
      absl::StrAppend(&result, bytes.substr(0, length));
    }
    bytes.remove_prefix(length);
  }
  return result;
}

int DisplayWidth(absl::string_view text) {
  int width = 0;
  ForEachPiece(text, [&](absl::string_view, int cells) {
    width += cells;
    return true;
  });
  return width;
}

std::string Ellipsize(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string result;
  int used = 0;
  ForEachPiece(text, [&](absl::string_view piece, int cells) {
    if (used + cells > width - 1) return false;
    used += cells;
    absl::StrAppend(&result, piece);
    return true;
  });
  return result + "…";
}

std::string ShellQuote(absl::string_view word) {
  constexpr absl::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kSafe) == absl::string_view::npos)
    return std::string(word);
  return "'" + absl::StrReplaceAll(word, {{"'", "'\\''"}}) + "'";
}

std::string ShellJoin(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line.push_back(' ');
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace muster
