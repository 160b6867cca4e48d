// Notices tasks that make no progress, and saves what their threads are doing.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"

namespace muster::local {

// When the task last showed a sign of progress: output, or a new progress file.
absl::Time LastProgress(absl::Time started, absl::Time last_output,
                        const std::string& progress_file);

// Writes to `path` what /proc tells about the threads of `root` and of its descendants, and starts
// gdb (where there is one) to append their stacks. Returns gdb's pid; 0 when there is nothing to
// wait for.
absl::StatusOr<pid_t> CaptureStacks(pid_t root, const std::string& path);

// How long gdb may take for it all.
inline constexpr absl::Duration kCaptureTimeout = absl::Seconds(30);

}  // namespace muster::local
