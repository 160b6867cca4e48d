// Why a task's process ended, in words a user can act on.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/lifecycle.h"
#include "process/exit_status.h"

namespace muster {

// What is known besides the exit status.
struct ExitEvidence {
  std::vector<std::string> last_lines;
  std::string error_file;   // TORCHELASTIC_ERROR_FILE's content; "" = not written
  bool oom_killed = false;  // the kernel ran out of memory meanwhile
  bool runs_shell = false;  // the command is a shell line
  int port = 0;
  bool port_is_ours = false;  // Muster picked the port, and somebody else holds it now
};

AttemptEnd ExplainExit(const ExitStatus& status, const ExitEvidence& evidence);
// For a process that could not be started at all.
AttemptEnd ExplainSpawnFailure(const absl::Status& status, const std::string& role);

// How often this machine's kernel has killed a process for lack of memory; 0 when it does not say.
int64_t OomKillCount();

}  // namespace muster
