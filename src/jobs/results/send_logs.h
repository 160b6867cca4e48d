// Copies the logs of a job to its model dir.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster::jobs {

// Copies the logs of the job in `directory` to logs/<job>/ in a remote model dir. Does nothing for
// a local one.
absl::Status SendLogs(const std::string& directory);

}  // namespace muster::jobs
