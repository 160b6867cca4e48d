// The command-line options that override fields of a job file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/job_spec.h"
#include "job/target.h"

namespace muster::vertex {

// Applies --worker-count, --parameter-server-count and --dataset. A role that the file does not
// have is added: it runs the program of the leading task. A count of 0 removes the role. A default
// strategy of the built-in trainer follows the new roles. Returns InvalidArgument if the job would
// be invalid.
absl::Status ApplyOverrides(const job::VertexTarget& target, job::JobSpec& spec);

// Returns the URL of a folder in a bucket. "bucket/path" means "gs://bucket/path". Returns
// InvalidArgument, naming `option`, for a path of this machine.
absl::StatusOr<std::string> BucketUrl(absl::string_view option, absl::string_view text);

// Returns the name of a bucket without "gs://" and a trailing slash.
std::string BucketName(absl::string_view text);

}  // namespace muster::vertex
