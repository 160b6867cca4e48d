// Standard output or error, as a terminal or as a file. The one place where text leaves the
// program: whatever a job file, a host or a service put into it, it cannot steer a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/terminal_text.h"

namespace muster::cli {

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// Colour only on a terminal, and not when NO_COLOR is set or TERM is dumb.
class Terminal {
 public:
  explicit Terminal(FILE* stream);

  bool is_terminal() const { return is_terminal_; }
  // A terminal on which lines can be drawn anew: not a dumb one.
  bool can_redraw() const { return can_redraw_; }
  bool unicode() const { return unicode_; }  // by the locale; false when it is not a terminal
  int width() const;                         // cells; 80 when it is not a terminal
  int height() const;                        // lines; 24 when it is not a terminal
  std::string Paint(Style style, absl::string_view text) const;

  // One line below all that is printed, drawn anew in its place, when can_redraw(); at most width()
  // - 1 cells. "" takes it away, and so does whatever is printed.
  void SetStatus(const std::string& text);
  // What is printed here takes away the status of `other`, which must outlive this.
  void SharesScreenWith(Terminal& other) { other_ = &other; }

  // Text for people, a file too: Printable() but for line ends and, where there are colours, those
  // of Paint().
  void Print(absl::string_view text);
  void PrintLine(absl::string_view text);
  // The output of tasks, and text that another program reads (JSON, YAML, shell): unchanged on a
  // file, Printable() but for line ends on a terminal.
  void PrintData(absl::string_view text);
  // Erases the last `lines` lines, when can_redraw().
  void EraseLines(int lines);
  void Flush();
  // A line of Muster's own among other output: "muster: …".
  void Note(absl::string_view text);
  void Error(absl::string_view text);  // "muster: error: …"
  // False once something could not be written: the reader has gone away, or the disk is full.
  bool ok() const { return error_ == 0; }
  int error() const { return error_; }  // the errno of the first failure; 0 = none

 private:
  void TakeStatusAway();
  void Write(absl::string_view text);
  Colours colours() const { return colour_ ? Colours::kBasic : Colours::kNone; }

  FILE* stream_;
  bool is_terminal_;
  bool can_redraw_;
  bool colour_;
  bool unicode_;
  std::string status_;
  Terminal* other_ = nullptr;
  int error_ = 0;
};

enum class Consent { kGiven, kRefused, kNobodyToAsk };

// Asks a question that is answered with y or n, when standard input is a terminal; its end is a no.
// `err` is standard error: standard output may be a file, where nobody would see the question.
// `given`: the user has agreed beforehand (--yes).
Consent AskConsent(Terminal& err, bool given, const std::string& question);

// As AskConsent, for what must not be done unasked: true when it is given, false when it is
// refused, FailedPrecondition with `undone` ("nothing was removed") when there is nobody to ask.
absl::StatusOr<bool> DemandConsent(Terminal& err, bool given, const std::string& question,
                                   const std::string& undone);

// Columns as wide as their content, two spaces apart. On a terminal where a row does not fit, the
// columns `optional` are left out one after the other, then the column `shrink` (-1: none) gives up
// cells, then the first column does, from the middle of its cells, and what is still too long is
// cut.
class Table {
 public:
  explicit Table(std::vector<std::string> header, int shrink = -1, std::vector<int> optional = {})
      : shrink_(shrink), optional_(std::move(optional)), rows_{std::move(header)} {}
  // A cell is one line: line ends in it are shown as "^J".
  void Add(std::vector<std::string> row);
  std::string Render(const Terminal& terminal) const;

 private:
  std::vector<int> Widths() const;
  std::vector<int> FittedWidths(int available) const;  // -1 = left out

  int shrink_;
  std::vector<int> optional_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli
