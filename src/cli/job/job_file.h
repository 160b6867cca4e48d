// Reads the job files that a command is given, with the changes that its options make.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/context.h"
#include "job/format/overrides.h"
#include "job/submission.h"

namespace muster::cli {

// Adds --set, --env, --name and the arguments after `--`, which change a job file. `overrides` must
// live until the command has run.
void AddOverrideOptions(Command& command, job::Overrides* overrides);
// Returns the submission of one or more job files ("-" = standard input), merged and overridden;
// see jobs/start/load.h.
absl::StatusOr<job::Submission> LoadJobFiles(Context& context,
                                             const std::vector<std::string>& paths,
                                             const job::Overrides& overrides);
// Likewise for a command that does not start the job: replaces {job_id} in model_dir with the job's
// name.
absl::StatusOr<job::Submission> LoadJobFile(Context& context, const std::string& path,
                                            const job::Overrides& overrides = {});
// Returns InvalidArgument, with the reason `why`, if overrides are given to a command that was not
// given a job file.
absl::Status CheckNoOverrides(const job::Overrides& overrides, const std::string& why);
// Returns whether `reference` denotes a file or "-" rather than a job.
bool IsFile(Context& context, const std::string& reference);

}  // namespace muster::cli
