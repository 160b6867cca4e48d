// What the commands know of the built-in trainer: jobs with a train section, and what they leave in
// their model dir.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "launch/submission.h"

namespace muster::cli {

// What the job was started with. FailedPrecondition when it has no train section.
absl::StatusOr<Submission> TrainSubmission(const JobRecord& job);

// Where the checkpoints are and how good the last evaluation was, a line each; "" when there are
// none, or the job has no train section.
std::string TrainingResult(const JobRecord& job);

// NotFound when the model dir has no complete checkpoint of that step: the message lists those that
// there are. A model dir that is not on this machine is not looked at.
absl::Status CheckCheckpoint(const std::string& model_dir, int64_t step);

}  // namespace muster::cli
