// Static analysis of a shell command line.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::local {

struct ShellCommand {
  // The program and its arguments, up to the first word that needs shell expansion.
  std::vector<std::string> words;
  bool decides = false;  // the line fails if this command fails
};

// Returns the first command of the line. Returns no words if the line starts with a shell builtin
// or keyword, or with a word that needs shell expansion, or if it sets PATH or contains "||".
ShellCommand FirstCommand(absl::string_view line);

}  // namespace muster::local
