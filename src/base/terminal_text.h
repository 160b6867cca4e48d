// Text as a terminal shows it: width in cells, bytes that a terminal must not be sent, shell
// quoting.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// Invalid UTF-8 becomes U+FFFD; control characters but tab become "^X" unless they begin a colour
// sequence (ESC [ … m), which passes. One line of a log, made safe to show.
std::string Printable(absl::string_view bytes);

// Cells that `text` takes on a terminal, colour sequences not counted.
int DisplayWidth(absl::string_view text);

// At most `width` cells, with "…" at the end when something was cut.
std::string Ellipsize(absl::string_view text, int width);

// One word for a POSIX shell: quoted only when it must be.
std::string ShellQuote(absl::string_view word);
std::string ShellJoin(const std::vector<std::string>& words);

}  // namespace muster
