// Draws the state of `muster top` as lines of text. Pure.
#pragma once

#include "absl/time/time.h"
#include "cli/terminal/full_screen.h"
#include "cli/terminal/terminal.h"
#include "cli/top/model.h"

namespace muster::cli {

// Returns at most screen().rows lines of at most screen().columns cells. Text of jobs and tasks is
// made printable. `terminal` supplies colours; its size is not used.
Frame DrawTop(const TopModel& model, const Terminal& terminal, absl::Time now);

}  // namespace muster::cli
