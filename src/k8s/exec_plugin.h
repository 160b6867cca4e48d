// Runs a plugin that provides credentials.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "k8s/config.h"
#include "k8s/credentials.h"

namespace muster::k8s {

// Returns the ExecCredential that the plugin prints. Returns FailedPrecondition with the install
// hint if the plugin is not installed, Unauthenticated if it fails or prints something else, and
// DeadlineExceeded if it takes too long; the plugin is then killed with its children. Its stderr is
// copied to this process's if that is a terminal, and the last lines are part of the error. Blocks.
absl::StatusOr<Credential> RunExecPlugin(const ExecPlugin& plugin, const ClusterConfig& cluster,
                                         absl::Duration timeout);

}  // namespace muster::k8s
