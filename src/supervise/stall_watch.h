// Detects tasks that make no progress, and captures the stacks of their threads.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"

namespace muster::supervise {

// A file that a task touches at every step. A change is dated by the caller's clock, because mtime
// jumps when the machine's clock is set.
class ProgressFile {
 public:
  // Returns the `now` of the first call that saw the file's current mtime, or InfinitePast if the
  // file does not exist.
  absl::Time LastChange(const std::string& path, absl::Time now);

 private:
  absl::Time modified_ = absl::InfinitePast();
  absl::Time seen_ = absl::InfinitePast();
};

// Writes the thread states of `root` and its descendants from /proc to `path`. If gdb is installed,
// starts it to append their stacks, and returns the pid of a process group leader that the caller
// must reap. Returns 0 if there is nothing to wait for.
absl::StatusOr<pid_t> CaptureStacks(pid_t root, const std::string& path);

// Limit for the whole gdb run.
inline constexpr absl::Duration kCaptureTimeout = absl::Seconds(30);

}  // namespace muster::supervise
