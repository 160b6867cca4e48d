// Starts a program.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

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

// The child starts with default signal handlers and an empty mask, and with no descriptor of ours
// but the three. When the program cannot be executed no process is left behind: NotFound (no such
// program), PermissionDenied, InvalidArgument (not an executable format), and others from errno;
// the message names the program or the directory.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// Where the shell would find `program`: as it is when it has a slash (relative to `working_dir`),
// else by PATH in `env`. NotFound / PermissionDenied say where was looked.
absl::StatusOr<std::string> FindProgram(const std::string& program,
                                        const std::map<std::string, std::string>& env,
                                        const std::string& working_dir);

// This process's environment as a map.
std::map<std::string, std::string> CurrentEnvironment();

}  // namespace muster
