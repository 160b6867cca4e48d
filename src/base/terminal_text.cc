#include "base/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace muster {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

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
      const CodePoint code = DecodeUtf8(text);
      cells = code.bytes == 0 ? 1 : CellWidth(code.value);
      length = std::max<size_t>(code.bytes, 1);
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
    const size_t colour = ColourSequence(bytes);
    const CodePoint code = colour > 0 ? CodePoint{0, colour} : DecodeUtf8(bytes);
    if (colour > 0) {
      absl::StrAppend(&result, bytes.substr(0, colour));
    } else if (code.bytes == 0 || (code.value >= 0x80 && code.value < 0xA0)) {
      absl::StrAppend(&result, kReplacement);
    } else if ((code.value < 0x20 && code.value != '\t') || code.value == 0x7F) {
      result.push_back('^');
      result.push_back(static_cast<char>(code.value ^ 0x40));
    } else {
      absl::StrAppend(&result, bytes.substr(0, code.bytes));
    }
    bytes.remove_prefix(std::max<size_t>(code.bytes, 1));
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
