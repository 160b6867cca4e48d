// Starts child processes.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::process {

struct SpawnOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // the whole environment
  std::string working_dir;                 // "" = this process's
  int stdin_fd = -1;                       // -1 = /dev/null
  int output_fd = -1;                      // stdout and stderr; -1 = inherited
  int error_fd = -1;                       // stderr alone; -1 = as above
  int parent_death_signal = 0;  // sent to the child when the calling thread dies; 0 = none
  bool new_session = false;     // setsid: no terminal, its own process group
  bool new_group = false;       // its own process group, whose id is the pid
};

// Starts a program and returns its pid. The child has default signal handlers, an empty signal
// mask, and no inherited descriptors except stdin, stdout and stderr. If the program cannot be
// executed, no process is left behind and the result is NotFound, PermissionDenied, InvalidArgument
// (not an executable format) or another status from errno; the message names the program or the
// directory.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// Returns the path of `program` as a shell would resolve it: relative to `working_dir` if it
// contains a slash, else by PATH in `env`. Returns NotFound or PermissionDenied with the places
// searched.
absl::StatusOr<std::string> FindProgram(const std::string& program,
                                        const std::map<std::string, std::string>& env,
                                        const std::string& working_dir);

// Returns the environment of this process.
std::map<std::string, std::string> CurrentEnvironment();

}  // namespace muster::process
