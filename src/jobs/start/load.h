// Turns job files into submissions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/format/overrides.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "jobs/start/config_files.h"

namespace muster::jobs {

// Validates one or more job files, merged (see jobs/start/config_files.h), for a job that starts in
// `working_dir`, with `overrides` applied. Returns a submission with a new id, or InvalidArgument
// with all diagnostics. Notifies of warnings. Keeps {job_id} in model_dir: see FillInJobId().
absl::StatusOr<job::Submission> LoadSubmission(Service& service,
                                               const std::vector<ConfigFile>& files,
                                               const std::string& working_dir,
                                               const job::Overrides& overrides = {});

// Replaces {job_id} in the model_dir, once the id is final.
void FillInJobId(const std::string& job_id, job::Submission& submission);

}  // namespace muster::jobs
