// What can be told of a line of shell without running it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::cli {

struct ShellCommand {
  // The program and its arguments, up to the first that only the shell can work out.
  std::vector<std::string> words;
  bool decides = false;  // the line fails when this command does
};

// The command that the line begins with, when that is plain to see; no words when it begins with a
// builtin or with something that only the shell can work out.
ShellCommand FirstCommand(absl::string_view line);

}  // namespace muster::cli
