// Describes jobs and tasks in a terminal.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "job/event_sink.h"
#include "jobs/results/results.h"

namespace muster::cli {

// Returns the name of the state, coloured if `terminal` supports it.
std::string PaintState(const Terminal& terminal, job::JobState state);
std::string PaintState(const Terminal& terminal, job::TaskState state);

// Returns the outcome of a finished job. For a failed job, includes the first failure, its cause
// and the tasks that failed because of it. Ends with a newline.
std::string Verdict(const Terminal& terminal, const job::JobRecord& job);

// Returns a line for the checkpoints and one for the latest evaluation, each only if the result has
// it.
std::string TrainingLines(const job::JobRecord& job, const jobs::TrainingResult& result);

}  // namespace muster::cli
