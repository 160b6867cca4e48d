// Standard output or error, as a terminal or as a file.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::cli {

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// Colour only on a terminal, and not when NO_COLOR is set or TERM is dumb.
class Terminal {
 public:
  explicit Terminal(FILE* stream);

  bool is_terminal() const { return is_terminal_; }
  int width() const;  // cells; 80 when it is not a terminal
  std::string Paint(Style style, absl::string_view text) const;

  void Print(absl::string_view text);
  void PrintLine(absl::string_view text);
  void Flush() { std::fflush(stream_); }
  // A line of Muster's own among other output: "muster: …".
  void Note(absl::string_view text);
  void Error(absl::string_view text);  // "muster: error: …"
  // False once the reader has gone away (a closed pipe).
  bool ok() const { return ok_; }

 private:
  FILE* stream_;
  bool is_terminal_;
  bool colour_;
  bool ok_ = true;
};

// A question that is answered with y or n; false when standard input ends.
bool Ask(Terminal& terminal, const std::string& question);

// Columns as wide as their content, two spaces apart. On a terminal the column `shrink` (-1: none)
// gives up cells so that a row fits.
class Table {
 public:
  explicit Table(std::vector<std::string> header, int shrink = -1)
      : shrink_(shrink), rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Render(const Terminal& terminal) const;

 private:
  int shrink_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli
