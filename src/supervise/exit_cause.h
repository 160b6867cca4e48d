// Explains the end of a task's process to the user: cause, advice, and whether a retry can help.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "process/exit_status.h"
#include "supervise/lifecycle.h"

namespace muster::supervise {

// Observations about an exit in addition to its status.
struct ExitEvidence {
  std::vector<std::string> last_lines;
  std::string error_file;   // content of TORCHELASTIC_ERROR_FILE; "" if not written
  bool oom_killed = false;  // the machine's OOM-kill count has increased
  bool runs_shell = false;  // the command runs in /bin/sh
  int port = 0;
  bool port_is_ours = false;  // Muster picked the port, and it is still in use
};

// Returns the cause of an exit. Clears may_retry if the shell cannot find or execute the command.
// Sets port_taken if the task failed to bind a port that Muster had picked.
AttemptEnd ExplainExit(const process::ExitStatus& status, const ExitEvidence& evidence);
// Returns the cause of an attempt whose process could not be spawned. Clears may_retry for errors
// that a retry cannot fix, such as a missing program.
AttemptEnd ExplainSpawnFailure(const absl::Status& status, const std::string& role);

// Returns the number of OOM kills on this machine since boot, or 0 if the kernel does not report
// it.
int64_t OomKillCount();

}  // namespace muster::supervise
