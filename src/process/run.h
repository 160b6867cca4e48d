// Runs a program to completion, with a timeout.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "process/exit_status.h"
#include "process/spawn.h"

namespace muster::process {

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};
// Creates a pipe whose ends are close-on-exec.
absl::StatusOr<Pipe> MakePipe();

// Waits for a child and reaps it. Kills it with SIGKILL after `timeout`.
ExitStatus WaitOrKill(pid_t pid, absl::Duration timeout);

struct RunResult {
  std::string output;  // stdout and stderr, interleaved
  ExitStatus exit;
};

// Runs the program and blocks until it exits. Keeps the first `max_bytes` of its output and drops
// the rest. Does not wait for processes that it leaves running. Returns DeadlineExceeded if it had
// to be killed after `timeout`, or Spawn()'s errors. Sets output_fd and new_group of `options`.
// Polls `cancelled`, if set: once it returns true, ends the program and its group with SIGTERM, and
// with SIGKILL after a few seconds, and returns Cancelled.
absl::StatusOr<RunResult> Run(SpawnOptions options, absl::Duration timeout,
                              size_t max_bytes = 64 << 10,
                              const std::function<bool()>& cancelled = nullptr);

}  // namespace muster::process
