// The whole terminal as one picture, drawn on its alternate screen.
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::cli {

struct Frame {
  std::vector<std::string> lines;  // at most the colours of Terminal::Paint()
  int highlighted = -1;            // the line shown in reverse video; -1 = none
};

// Draws frames on standard output and lets standard input be read key by key. Ctrl-C and Ctrl-Z
// still send signals. The terminal is as before after Leave() and after destruction. Not
// thread-safe.
class FullScreen {
 public:
  FullScreen() = default;
  ~FullScreen() { Leave(); }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Returns FailedPrecondition if standard input is not a terminal.
  absl::Status Enter();
  void Leave();
  // Writes the lines that differ from the last frame. Text is made printable.
  void Draw(const Frame& frame, int columns);
  // Makes the next frame write every line.
  void Invalidate() { drawn_.clear(); }

 private:
  std::optional<termios> before_;   // set while entered
  std::vector<std::string> drawn_;  // as written
};

}  // namespace muster::cli
