// Paths of this machine in a job that runs on another. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster::vertex {

// Whether something at that path, relative to the working directory, is sent with the job.
using IsSent = std::function<bool(absl::string_view path)>;

// InvalidArgument when the built-in trainer would look for files that only this machine has: what
// is in the working directory is sent along, if `is_sent`, and all else must be at a URL. The
// message says how.
absl::Status CheckPaths(const JobSpec& spec, const std::string& working_dir, const IsSent& is_sent);

// The job with the paths below `from` as they are below `to`.
JobSpec MovePaths(JobSpec spec, absl::string_view from, absl::string_view to);

}  // namespace muster::vertex
