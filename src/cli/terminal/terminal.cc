#include "cli/terminal/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kDefaultHeight = 24;
constexpr int kNarrowestColumn = 10;
constexpr int kNarrowestName = 16;  // minimum of the first column
// Optional columns are omitted only to give the shrinking column this width, not more.
constexpr int kReadableColumn = 30;

bool ColourWanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return no_colour == nullptr || *no_colour == '\0';
}

bool IsDumb() {
  const char* term = std::getenv("TERM");
  return term != nullptr && absl::string_view(term) == "dumb";
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = absl::AsciiStrToLower(value);
    return absl::StrContains(locale, "utf-8") || absl::StrContains(locale, "utf8");
  }
  return false;
}

winsize SizeOf(FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0) return {};
  return size;
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
      can_redraw_(is_terminal_ && !IsDumb()),
      colour_(can_redraw_ && ColourWanted()),
      unicode_(is_terminal_ && LocaleIsUtf8()) {}

int Terminal::width() const {
  const int columns = SizeOf(stream_).ws_col;
  return columns == 0 ? kDefaultWidth : columns;
}

int Terminal::height() const {
  const int rows = SizeOf(stream_).ws_row;
  return rows == 0 ? kDefaultHeight : rows;
}

std::string Terminal::Paint(Style style, absl::string_view text) const {
  if (!colour_ || style == Style::kPlain) return std::string(text);
  return absl::StrCat(Code(style), text, "\x1b[0m");
}

void Terminal::SetStatus(const std::string& text) {
  if (!can_redraw_ || text == status_) return;
  status_ = text;
  Write(absl::StrCat("\r", base::Printable(text, colours()), "\x1b[K"));
  Flush();
}

void Terminal::EraseStatus() {
  if (other_ != nullptr) other_->SetStatus("");
  SetStatus("");
}

void Terminal::Print(absl::string_view text) {
  EraseStatus();
  Write(base::Printable(text, colours(), base::LineEnds::kKept));
}

void Terminal::PrintData(absl::string_view text) {
  EraseStatus();
  if (is_terminal_) {
    Write(base::Printable(text, base::Colours::kAll, base::LineEnds::kKept));
  } else {
    Write(text);
  }
}

void Terminal::EraseLines(int lines) {
  if (!can_redraw_ || lines <= 0) return;
  EraseStatus();
  Write(absl::StrCat("\x1b[", lines, "A\x1b[J"));
}

void Terminal::Write(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() && ok()) error_ = errno;
}

void Terminal::Flush() {
  if (std::fflush(stream_) != 0 && ok()) error_ = errno;
}

void Terminal::PrintLine(absl::string_view text) {
  Print(absl::StrCat(text, "\n"));  // one write, because standard error is unbuffered
}

void Terminal::Note(absl::string_view text) {
  PrintLine(absl::StrCat(Paint(Style::kDim, "muster:"), " ", text));
}

void Terminal::Error(absl::string_view text) {
  PrintLine(absl::StrCat("muster: ", Paint(Style::kRed, "error:"), " ", text));
}

Consent AskConsent(Terminal& err, bool given, const std::string& question) {
  if (given) return Consent::kGiven;
  if (::isatty(STDIN_FILENO) == 0) return Consent::kNobodyToAsk;
  for (;;) {
    err.Print(absl::StrCat(question, " [y/n] "));
    err.Flush();
    std::string answer;
    if (!std::getline(std::cin, answer)) {
      err.Print("\n");
      return Consent::kRefused;
    }
    answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
    if (answer == "y" || answer == "yes") return Consent::kGiven;
    if (answer == "n" || answer == "no") return Consent::kRefused;
  }
}

absl::StatusOr<bool> DemandConsent(Terminal& err, bool given, const std::string& question,
                                   const std::string& undone) {
  const Consent consent = AskConsent(err, given, question);
  if (consent != Consent::kNobodyToAsk) return consent == Consent::kGiven;
  return absl::FailedPreconditionError(
      absl::StrCat(undone, ": there is no terminal to confirm it on; pass --yes"));
}

absl::StatusOr<std::optional<std::string>> AskSecret(Terminal& err, const std::string& question) {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) return std::nullopt;
  // Ctrl-C is delivered within ppoll() only, so it ends the wait and the echo comes back.
  const process::HeldSignals held({SIGINT});
  sigset_t waiting;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &waiting);
  ::sigdelset(&waiting, SIGINT);
  struct sigaction interrupt = {}, previous = {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(SIGINT, &interrupt, &previous);
  termios silent = before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  err.Print(question);
  err.Flush();
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool interrupted = ::ppoll(&input, 1, nullptr, &waiting) < 0;
  std::string line(1024, '\0');
  const ssize_t n = interrupted ? 0 : ::read(STDIN_FILENO, line.data(), line.size());
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
  ::sigaction(SIGINT, &previous, nullptr);
  err.Print("\n");
  if (interrupted) return absl::CancelledError("interrupted");
  if (n <= 0) return std::nullopt;
  line.resize(static_cast<size_t>(n));
  if (line.back() == '\n') line.pop_back();
  return line;
}

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = base::Printable(cell, base::Colours::kBasic);
  rows_.push_back(std::move(row));
}

std::vector<int> Table::Widths() const {
  std::vector<int> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], base::DisplayWidth(row[i]));
  }
  return widths;
}

std::vector<int> Table::FittedWidths(int available) const {
  std::vector<int> widths = Widths();
  const auto total = [&widths] {
    int cells = -2;
    for (const int width : widths) cells += width < 0 ? 0 : width + 2;
    return cells;
  };
  const auto spare = [&] {
    return shrink_ < 0 ? 0 : std::max(0, widths[static_cast<size_t>(shrink_)] - kReadableColumn);
  };
  for (const int column : optional_) {
    if (total() - spare() > available) widths[static_cast<size_t>(column)] = -1;
  }
  if (shrink_ < 0) return widths;
  const auto give_up = [&](int& column, int narrowest) {
    if (total() > available) {
      column = std::max(std::min(column, narrowest), column - (total() - available));
    }
  };
  give_up(widths[static_cast<size_t>(shrink_)], kNarrowestColumn);
  give_up(widths[0], kNarrowestName);
  return widths;
}

std::string Table::Render(const Terminal& terminal) const {
  const std::vector<int> widths =
      terminal.is_terminal() ? FittedWidths(terminal.width()) : Widths();
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    int pending = 0;  // padding before the next non-empty cell: no trailing spaces
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      if (widths[i] < 0) continue;
      const std::string cell = i == 0 ? base::EllipsizeMiddle(rows_[r][i], widths[i])
                                      : base::Ellipsize(rows_[r][i], widths[i]);
      if (!cell.empty()) {
        line.append(static_cast<size_t>(pending), ' ');
        line += cell;
        pending = 0;
      }
      pending += widths[i] - base::DisplayWidth(cell) + 2;
    }
    if (shrink_ >= 0 && terminal.is_terminal() && base::DisplayWidth(line) > terminal.width()) {
      // Truncation may remove the sequence that resets a colour.
      const bool coloured = line.find('\x1b') != std::string::npos;
      line = absl::StrCat(base::Ellipsize(line, terminal.width()), coloured ? "\x1b[0m" : "");
    }
    absl::StrAppend(&text, r == 0 ? terminal.Paint(Style::kBold, line) : line, "\n");
  }
  return text;
}

}  // namespace muster::cli
