// The difference of two texts.
#pragma once

#include <string>

#include "cli/terminal.h"

namespace muster::cli {

// Unified form with three lines around each change, coloured on a terminal; "" when they are equal.
std::string UnifiedDiff(const Terminal& terminal, const std::string& before,
                        const std::string& after);

}  // namespace muster::cli
