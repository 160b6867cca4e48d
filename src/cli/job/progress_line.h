// Shows the progress of a job.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/terminal/terminal.h"
#include "jobs/results/progress.h"

namespace muster::cli {

// Returns a status line of at most width() - 1 cells. A narrow terminal gets a shorter bar, then
// fewer fields:
//   38% ████████▌           step 760/2000  loss 0.0712  5,321 examples/s  0:42 left
std::string ProgressLine(const Terminal& terminal, const jobs::Progress& progress,
                         std::optional<absl::Duration> left);

}  // namespace muster::cli
