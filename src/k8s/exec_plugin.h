// Runs the program that signs us in.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "k8s/config.h"
#include "k8s/credentials.h"

namespace muster::k8s {

// What the plugin prints (an ExecCredential). FailedPrecondition when it is not installed, with its
// hint; Unauthenticated when it fails or prints something else; DeadlineExceeded when it takes too
// long, and then it is killed with what it has started. What it writes to stderr is shown when that
// is a terminal, and its last lines are part of the error. Blocks.
absl::StatusOr<Credential> RunExecPlugin(const ExecPlugin& plugin, const ClusterConfig& cluster,
                                         absl::Duration timeout);

}  // namespace muster::k8s
