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

// A file that a task touches at every step. When it changed is told by our clock, not by its own
// time, which jumps when somebody sets the machine's clock.
class ProgressFile {
 public:
  // When the file was first seen as it is now, asked at `now`; InfinitePast while there is none.
  absl::Time LastChange(const std::string& path, absl::Time now);

 private:
  absl::Time modified_ = absl::InfinitePast();
  absl::Time seen_ = absl::InfinitePast();
};

// Writes to `path` what /proc tells about the threads of `root` and of its descendants, and starts
// gdb (where there is one) to append their stacks. Returns gdb's pid; 0 when there is nothing to
// wait for.
absl::StatusOr<pid_t> CaptureStacks(pid_t root, const std::string& path);

// How long gdb may take for it all.
inline constexpr absl::Duration kCaptureTimeout = absl::Seconds(30);

}  // namespace muster::local
