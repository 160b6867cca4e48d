#include "base/text/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text/utf8.h"

namespace muster::base {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
constexpr absl::string_view kReset = "\x1b[0m";

// Returns the length of the colour sequence that `bytes` starts with, or 0.
size_t ColourSequence(absl::string_view bytes) {
  if (bytes.size() < 3 || bytes[0] != '\x1b' || bytes[1] != '[') return 0;
  size_t i = 2;
  while (i < bytes.size() && ((bytes[i] >= '0' && bytes[i] <= '9') || bytes[i] == ';')) ++i;
  return i < bytes.size() && bytes[i] == 'm' ? i + 1 : 0;
}

bool IsBasic(absl::string_view sequence) {
  constexpr absl::string_view kBasic[] = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",
                                          "\x1b[31m", "\x1b[32m", "\x1b[33m",
                                          "\x1b[34m", "\x1b[35m", "\x1b[36m"};
  return std::find(std::begin(kBasic), std::end(kBasic), sequence) != std::end(kBasic);
}

// Returns true for the bidirectional controls, after which a terminal may show text in another
// order than its bytes.
bool Reorders(uint32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

// An approximation of wcwidth() that does not depend on the locale.
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

// Calls visit(piece, cells) for each code point or colour sequence, until it returns false.
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

std::string Printable(absl::string_view bytes, Colours colours, LineEnds line_ends) {
  std::string result;
  result.reserve(bytes.size());
  bool coloured = false;
  while (!bytes.empty()) {
    size_t colour = colours == Colours::kNone ? 0 : ColourSequence(bytes);
    if (colours == Colours::kBasic && !IsBasic(bytes.substr(0, colour))) colour = 0;
    const CodePoint code = colour > 0 ? CodePoint{0, colour} : DecodeUtf8(bytes);
    if (colour > 0) {
      absl::StrAppend(&result, bytes.substr(0, colour));
      coloured = bytes.substr(0, colour) != kReset;
    } else if (code.value == '\n' && line_ends == LineEnds::kKept) {
      absl::StrAppend(&result, coloured ? kReset : "", "\n");
      coloured = false;
    } else if (code.bytes == 0 || (code.value >= 0x80 && code.value < 0xA0) ||
               Reorders(code.value)) {
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

std::string EllipsizeMiddle(absl::string_view text, int width) {
  const int total = DisplayWidth(text);
  if (total <= width) return std::string(text);
  const int head = (width - 1) / 2;
  const int tail_from = total - (width - 1 - head);
  std::string before, after;
  int used = 0;
  ForEachPiece(text, [&](absl::string_view piece, int cells) {
    if (used + cells <= head && after.empty()) absl::StrAppend(&before, piece);
    if (used >= tail_from) absl::StrAppend(&after, piece);
    used += cells;
    return true;
  });
  return absl::StrCat(before, "…", after);
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

}  // namespace muster::base
