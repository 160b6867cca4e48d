// Invokes the system's ssh, so that the user's configuration, agents, jump hosts and known hosts
// apply.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "job/host_spec.h"

namespace muster::ssh {

enum class Sharing {
  kShared,  // multiplexed over a connection shared with other commands to the host
  kOwn,     // over its own connection: a shared one may be dead without notice
};

// Returns the argv that runs `command` in a shell on the host, never prompting. $MUSTER_SSH
// overrides the program and may include arguments: "ssh -F file".
std::vector<std::string> SshArgv(const job::HostSpec& host, const std::string& command,
                                 Sharing sharing);

// Returns the environment for ssh. BatchMode does not apply to the ssh that connects to a jump
// host; these variables keep that one from prompting too.
std::map<std::string, std::string> SshEnvironment();

// Returns a command that runs `script` in sh, quoted for any login shell.
std::string ForAnyShell(absl::string_view script);

// Maps the exit code of ssh and its standard error to a status with advice: Unavailable if the host
// cannot be reached, NotFound if its name is unknown, PermissionDenied if the login is refused,
// FailedPrecondition for its host key, or Unknown if the remote command failed.
absl::Status ExplainSsh(const job::HostSpec& host, int exit_code, absl::string_view error_output);

}  // namespace muster::ssh
