// The `train` section of a native job file: what the built-in trainer does.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"
#include "nlohmann/json.hpp"

namespace muster {

// True for the roles that the built-in trainer plays.
bool IsTrainerRole(absl::string_view role);

// The section as JSON, with relative paths resolved against `working_dir` and defaults filled in,
// so that the trainer needs no rules of its own.
nlohmann::json ReadTrain(const codec::Node& node, absl::string_view working_dir,
                         codec::Diagnostics& diagnostics);

// Holds the section to the job's roles, and chooses a strategy when it names none: sync with ps
// tasks, allreduce without. `mark` is the section's.
void FitTrainToRoles(JobSpec& spec, codec::Mark mark, codec::Diagnostics& diagnostics);

}  // namespace muster
