// Finds the shared libraries that a program needs, so that hosts can be checked before it is sent.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::ssh {

// Returns the DT_NEEDED names ("libtorch_cpu.so.1.13") in the order of the file. Returns an empty
// list if the file does not exist, is not a 64-bit ELF program or needs no library.
std::vector<std::string> NeededLibraries(const std::string& path);

// Returns the names in `needed` that are absent from `known`, the output of `ldconfig -p`.
std::vector<std::string> NotIn(absl::string_view known, const std::vector<std::string>& needed);

}  // namespace muster::ssh
