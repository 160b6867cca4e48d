// Prints how to reach the notebook beside a job in a cluster.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/job/target_options.h"
#include "job/submission.h"

namespace muster::cli {

// Returns the submission of the job that `reference` denotes on the platform of `target`, or of a
// job file, which has no id. REQUIRES: the platform has notebooks.
absl::StatusOr<job::Submission> ClusterSubmission(Context& context, const std::string& reference,
                                                  const TargetOptions& target);
// Prints how to reach the notebook. Returns the exit code.
absl::StatusOr<int> ShowClusterNotebook(Context& context, const job::Submission& submission);

}  // namespace muster::cli
