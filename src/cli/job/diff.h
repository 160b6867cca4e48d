// Line-based text diffs.
#pragma once

#include <string>

#include "cli/terminal/terminal.h"

namespace muster::cli {

// Returns a unified diff with three lines of context, coloured if `terminal` supports it. Returns
// "" if the texts are equal.
std::string UnifiedDiff(const Terminal& terminal, const std::string& before,
                        const std::string& after);

}  // namespace muster::cli
