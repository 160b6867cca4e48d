// Reads the `train` section of a native job file, the configuration of the built-in trainer.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// Returns true for the roles that the built-in trainer supports.
bool IsTrainerRole(absl::string_view role);

// Returns the section as JSON, with relative paths resolved against `working_dir` and all defaults
// set, so that the trainer has no default rules.
nlohmann::json ReadTrain(const codec::Node& node, absl::string_view working_dir,
                         codec::Diagnostics& diagnostics);

// Returns whether a section that ReadTrain() returned has `evaluate: off`.
bool IsEvaluationOff(const nlohmann::json& train);
// Returns the split on which a section that ReadTrain() returned evaluates; "test" by default.
std::string EvaluationSplit(const nlohmann::json& train);

// Checks the section against the job's roles. Sets the strategy if the section has none: sync for a
// job with ps tasks, else allreduce. `mark` is the position of the section.
void FitTrainToRoles(JobSpec& spec, codec::Mark mark, codec::Diagnostics& diagnostics);

}  // namespace muster::job
