// What can be told of a line of shell without running it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::cli {

// The program that the line begins with, when that is plain to see; "" when it begins with a
// builtin or with something that only the shell can work out.
std::string ProgramOfShellLine(absl::string_view line);

}  // namespace muster::cli
