#include "cli/terminal/full_screen.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/terminal_text.h"

namespace muster::cli {
namespace {

// The alternate screen keeps the user's lines; without automatic wrap, a line as wide as the
// terminal does not scroll it.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
constexpr char kLeave[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// Ignores errors: a terminal that is gone needs no picture.
void Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

}  // namespace

absl::Status FullScreen::Enter() {
  termios settings;
  if (::tcgetattr(STDIN_FILENO, &settings) != 0) {
    return absl::FailedPreconditionError("standard input is not a terminal");
  }
  before_ = settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  settings.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  settings.c_cc[VMIN] = 0;  // poll() waits, not read()
  settings.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings);
  std::fflush(stdout);
  Write(kEnter);
  Invalidate();
  return absl::OkStatus();
}

void FullScreen::Leave() {
  if (!before_.has_value()) return;
  Write(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
  before_.reset();
}

void FullScreen::Draw(const Frame& frame, int columns) {
  std::string text;
  const bool anew = drawn_.size() != frame.lines.size();
  if (anew) text = "\x1b[0m\x1b[2J";
  std::vector<std::string> next;
  next.reserve(frame.lines.size());
  for (size_t i = 0; i < frame.lines.size(); ++i) {
    const bool highlighted = static_cast<int>(i) == frame.highlighted;
    std::string line =
        base::Printable(frame.lines[i], highlighted ? base::Colours::kNone : base::Colours::kBasic);
    if (highlighted) {
      const int missing = columns - base::DisplayWidth(line);
      if (missing > 0) line.append(static_cast<size_t>(missing), ' ');
      line = absl::StrCat("\x1b[7m", line, "\x1b[0m");
    }
    if (anew || line != drawn_[i]) absl::StrAppend(&text, "\x1b[", i + 1, ";1H\x1b[K", line);
    next.push_back(std::move(line));
  }
  drawn_ = std::move(next);
  if (!text.empty()) Write(text);
}

}  // namespace muster::cli
