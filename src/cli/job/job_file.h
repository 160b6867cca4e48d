// Reads the job files that a command is given.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "job/format/overrides.h"
#include "job/submission.h"

namespace muster::cli {

// Returns the submission of one or more job files ("-" = standard input), merged and overridden;
// see jobs/load.h.
absl::StatusOr<job::Submission> LoadJobFiles(Context& context,
                                             const std::vector<std::string>& paths,
                                             const job::Overrides& overrides = {});
// Likewise for a command that does not start the job: replaces {job_id} in model_dir with the job's
// name.
absl::StatusOr<job::Submission> LoadJobFile(Context& context, const std::string& path);
// Returns whether `reference` denotes a file or "-" rather than a job.
bool IsFile(Context& context, const std::string& reference);

}  // namespace muster::cli
