// Maps local paths in a job to paths in its containers. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster::vertex {

// Returns true if the path, relative to the working directory, is sent with the job.
using IsSent = std::function<bool(absl::string_view path)>;

// Returns InvalidArgument, with the remedy, if the built-in trainer would read files that exist on
// this machine only: a path must be in the working directory and satisfy `is_sent`, or be a URL.
absl::Status CheckPaths(const job::JobSpec& spec, const std::string& working_dir,
                        const IsSent& is_sent);

// Returns the job with all paths below `from` moved below `to`.
job::JobSpec MovePaths(job::JobSpec spec, absl::string_view from, absl::string_view to);

}  // namespace muster::vertex
