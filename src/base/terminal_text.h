// Text as a terminal shows it: width in cells, bytes that a terminal must not be sent, shell
// quoting.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// The colour sequences (ESC [ … m) that Printable() lets pass. kBasic: reset, bold, dim and the
// foreground colours red to cyan, none of which can hide text.
enum class Colours { kNone, kBasic, kAll };
enum class LineEnds { kShown, kKept };

// `bytes`, made safe to show on a terminal: invalid UTF-8, C1 controls and the characters that
// reorder text (bidirectional embeddings, overrides and isolates) become U+FFFD, control characters
// but tab become "^X". The defaults suit one line of a log. A colour that is still on at the end of
// a kept line is turned off there.
std::string Printable(absl::string_view bytes, Colours colours = Colours::kAll,
                      LineEnds line_ends = LineEnds::kShown);

// Cells that `text` takes on a terminal, colour sequences not counted.
int DisplayWidth(absl::string_view text);

// At most `width` cells, with "…" at the end when something was cut.
std::string Ellipsize(absl::string_view text, int width);
// The same with the "…" in the middle: of names that differ at their end.
std::string EllipsizeMiddle(absl::string_view text, int width);

// One word for a POSIX shell: quoted only when it must be.
std::string ShellQuote(absl::string_view word);
std::string ShellJoin(const std::vector<std::string>& words);

}  // namespace muster
