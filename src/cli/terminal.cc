#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/terminal_text.h"

namespace muster::cli {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kNarrowestColumn = 10;

bool ColourWanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_colour == nullptr || *no_colour == '\0') &&
         (term == nullptr || absl::string_view(term) != "dumb");
}

const char* Code(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kBlue:
      return "\x1b[34m";
    case Style::kMagenta:
      return "\x1b[35m";
    case Style::kCyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

Terminal::Terminal(FILE* stream)
    : stream_(stream),
      is_terminal_(::isatty(::fileno(stream)) != 0),
      colour_(is_terminal_ && ColourWanted()) {}

int Terminal::width() const {
  winsize size{};
  if (!is_terminal_ || ::ioctl(::fileno(stream_), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kDefaultWidth;
  }
  return size.ws_col;
}

std::string Terminal::Paint(Style style, absl::string_view text) const {
  if (!colour_ || style == Style::kPlain) return std::string(text);
  return absl::StrCat(Code(style), text, "\x1b[0m");
}

void Terminal::Print(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) ok_ = false;
}

void Terminal::PrintLine(absl::string_view text) {
  Print(absl::StrCat(text, "\n"));  // one write: standard error is not buffered
}

void Terminal::Note(absl::string_view text) {
  PrintLine(absl::StrCat(Paint(Style::kDim, "muster:"), " ", text));
}

void Terminal::Error(absl::string_view text) {
  PrintLine(absl::StrCat("muster: ", Paint(Style::kRed, "error:"), " ", text));
}

bool Ask(Terminal& terminal, const std::string& question) {
  for (;;) {
    terminal.Print(absl::StrCat(question, " [y/n] "));
    terminal.Flush();
    std::string answer;
    if (!std::getline(std::cin, answer)) {
      terminal.Print("\n");
      return false;
    }
    answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
    if (answer == "y" || answer == "yes") return true;
    if (answer == "n" || answer == "no") return false;
  }
}

std::string Table::Render(const Terminal& terminal) const {
  std::vector<int> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  int total = 2 * (static_cast<int>(widths.size()) - 1);
  for (const int width : widths) total += width;
  if (shrink_ >= 0 && terminal.is_terminal() && total > terminal.width()) {
    int& column = widths[static_cast<size_t>(shrink_)];
    column = std::max(kNarrowestColumn, column - (total - terminal.width()));
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string cell = Ellipsize(rows_[r][i], widths[i]);
      line += cell;
      const bool last = i + 1 == rows_[r].size();
      const int padding = widths[i] - DisplayWidth(cell) + 2;
      if (!last) line.append(static_cast<size_t>(padding), ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    absl::StrAppend(&text, r == 0 ? terminal.Paint(Style::kBold, line) : line, "\n");
  }
  return text;
}

}  // namespace muster::cli
