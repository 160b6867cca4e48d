// Which shared libraries a program needs, so that a host can be asked for them before it is sent.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::ssh {

// The names in the file ("libtorch_cpu.so.1.13"), in its order. Empty when there is no such file,
// or it is no program for machines such as this one, or needs none.
std::vector<std::string> NeededLibraries(const std::string& path);

// Those that `ldconfig -p`, which has printed `known`, does not know.
std::vector<std::string> NotIn(absl::string_view known, const std::vector<std::string>& needed);

}  // namespace muster::ssh
