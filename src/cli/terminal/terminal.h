// Standard output and standard error, as a terminal or as a file. Commands print only through this
// class, which neutralizes control sequences from job files, hosts and services.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/text/terminal_text.h"

namespace muster::cli {

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// Writes to a stdio stream, which the caller owns. Uses colours only on a terminal, unless NO_COLOR
// is set or TERM is dumb. Not thread-safe.
class Terminal {
 public:
  explicit Terminal(FILE* stream);

  bool is_terminal() const { return is_terminal_; }
  // Returns whether lines can be redrawn: a terminal that is not dumb.
  bool can_redraw() const { return can_redraw_; }
  bool unicode() const { return unicode_; }  // by the locale; false if not a terminal
  int width() const;                         // cells; 80 if not a terminal
  int height() const;                        // lines; 24 if not a terminal
  // Returns `text` with colour sequences, or unchanged if colours are off.
  std::string Paint(Style style, absl::string_view text) const;

  // Shows a status line below the output, redrawn in place. Removed by "" and by any output. No
  // effect unless can_redraw(). REQUIRES: at most width() - 1 cells.
  void SetStatus(const std::string& text);
  // Makes output to this terminal remove the status line of `other`, which must outlive this.
  void SharesScreenWith(Terminal& other) { other_ = &other; }

  // Prints text for people, made Printable() also in a file. Keeps line ends, and the colours of
  // Paint() if colours are on.
  void Print(absl::string_view text);
  void PrintLine(absl::string_view text);
  // Prints output of tasks and machine-readable text (JSON, YAML, shell): unchanged to a file, made
  // Printable() with line ends kept on a terminal.
  void PrintData(absl::string_view text);
  // Erases the last `lines` lines. No effect unless can_redraw().
  void EraseLines(int lines);
  void Flush();
  // Prints a message of Muster itself among other output: "muster: …".
  void Note(absl::string_view text);
  void Error(absl::string_view text);  // "muster: error: …"
  // Returns false after a failed write: the reader closed the pipe, or the disk is full.
  bool ok() const { return error_ == 0; }
  int error() const { return error_; }  // the errno of the first failure; 0 = none

 private:
  void EraseStatus();
  void Write(absl::string_view text);
  base::Colours colours() const { return colour_ ? base::Colours::kBasic : base::Colours::kNone; }

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

// Asks a y/n question on `err`, standard error, because standard output may be a file. Repeats it
// until the answer is valid; end of input refuses. Returns kNobodyToAsk if standard input is not a
// terminal, and kGiven without asking if `given` (--yes).
Consent AskConsent(Terminal& err, bool given, const std::string& question);

// Likewise for an action that requires consent. Returns true if given, false if refused, or
// FailedPrecondition with `undone` ("nothing was removed") if standard input is not a terminal.
absl::StatusOr<bool> DemandConsent(Terminal& err, bool given, const std::string& question,
                                   const std::string& undone);

// Asks for a secret on `err`, without echo. Returns nullopt if standard input is not a terminal, or
// at end of input. Returns Cancelled, with the terminal restored, if the user interrupts.
absl::StatusOr<std::optional<std::string>> AskSecret(Terminal& err, const std::string& question);

// A table with columns as wide as their content, two spaces apart. On a terminal that is too
// narrow, omits the `optional` columns one by one, then shortens column `shrink`, then the first
// column (in the middle of its cells), and finally truncates rows. With `shrink` -1, only omits
// columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header, int shrink = -1, std::vector<int> optional = {})
      : shrink_(shrink), optional_(std::move(optional)), rows_{std::move(header)} {}
  // Cells are single lines: line ends are shown as "^J". REQUIRES: at most as many cells as the
  // header.
  void Add(std::vector<std::string> row);
  std::string Render(const Terminal& terminal) const;

 private:
  std::vector<int> Widths() const;
  std::vector<int> FittedWidths(int available) const;  // -1 = omitted

  int shrink_;
  std::vector<int> optional_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli
