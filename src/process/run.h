// Runs a program to its end, or until patience has one.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "process/exit_status.h"
#include "process/spawn.h"

namespace muster {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
// Neither end is for children.
absl::StatusOr<Pipe> MakePipe();

// How a child ended. When it does not within `patience` it is killed.
ExitStatus WaitOrKill(pid_t pid, absl::Duration patience);

struct RunResult {
  std::string output;  // what it printed, on both streams
  ExitStatus exit;
};

// Blocks. Of what the program prints `max_bytes` are kept and the rest is dropped; what it leaves
// running is not waited for. DeadlineExceeded when it did not end, and was killed; else Spawn's
// errors. Its output and group are set here.
absl::StatusOr<RunResult> Run(SpawnOptions options, absl::Duration patience,
                              size_t max_bytes = 64 << 10);

}  // namespace muster
