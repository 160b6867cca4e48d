// The system's ssh, so that the user's configuration, agents, jump hosts and known hosts count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "job/host_spec.h"

namespace muster::ssh {

enum class Sharing {
  kShared,  // over a connection that other commands to the host use, too, made when there is none
  kOwn,     // over one of its own: the shared one may be dead and not know it
};

// The program and arguments that run `command` by a shell of the host. It never asks for anything.
// $MUSTER_SSH names another program, with arguments: "ssh -F file".
std::vector<std::string> SshArgv(const HostSpec& host, const std::string& command, Sharing sharing);

// The environment for ssh. BatchMode does not hold for what ssh starts to get to a jump host: with
// this, that asks nobody either.
std::map<std::string, std::string> SshEnvironment();

// A command for whatever shell the user has there.
std::string ForAnyShell(absl::string_view script);

// Why ssh failed, from what it said, and what to do. Unavailable when the host cannot be reached;
// PermissionDenied when it lets nobody in; FailedPrecondition for its key.
absl::Status ExplainSsh(const HostSpec& host, int exit_code, absl::string_view said);

}  // namespace muster::ssh
