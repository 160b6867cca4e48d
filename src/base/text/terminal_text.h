// Makes text safe for a terminal, measures it in cells, and quotes it for a shell.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// The colour sequences (ESC [ … m) that Printable() keeps. kBasic: reset, bold, dim and the
// foreground colours red to cyan, none of which can hide text.
enum class Colours { kNone, kBasic, kAll };
enum class LineEnds { kShown, kKept };

// Returns `bytes` made safe for a terminal: invalid UTF-8, C1 controls and characters that reorder
// text (bidirectional embeddings, overrides and isolates) become U+FFFD; other control characters
// except tab become "^X". The defaults suit one line of a log. With LineEnds::kKept, a colour that
// is still on at the end of a line is reset there.
std::string Printable(absl::string_view bytes, Colours colours = Colours::kAll,
                      LineEnds line_ends = LineEnds::kShown);

// Returns the number of terminal cells that `text` takes, without colour sequences.
int DisplayWidth(absl::string_view text);

// Returns at most `width` cells of `text`, ending in "…" if something was cut.
std::string Ellipsize(absl::string_view text, int width);
// Likewise with the "…" in the middle, for names that differ at their end.
std::string EllipsizeMiddle(absl::string_view text, int width);

// Quotes one word for a POSIX shell, only if it needs quoting.
std::string ShellQuote(absl::string_view word);
std::string ShellJoin(const std::vector<std::string>& words);

}  // namespace muster::base
