// Jobs of the built-in trainer: their train section, and the results in their model dir.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"

namespace muster::cli {

// Returns the stored submission of the job, or FailedPrecondition if it has no train section.
absl::StatusOr<Submission> TrainSubmission(const JobRecord& job);

// Returns a line for the checkpoints and one for the latest evaluation, each only if it exists.
// Returns "" if the job has no train section. Reads a remote model dir only if the job succeeded.
// Omits results of other runs if the job failed.
std::string TrainingResult(const JobRecord& job);

// Returns NotFound, listing the usable checkpoints, if the model dir (a path or a URL) has no
// usable checkpoint of that step.
absl::Status CheckCheckpoint(const std::string& model_dir, int64_t step);

}  // namespace muster::cli
