// Connects a command to a Kubernetes cluster.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "k8s/client.h"

namespace muster::cli {

// Returns a client authenticated by the given context of the kubeconfig, or by the service account
// of the pod that this process runs in. Prints warnings of the API server to standard error unless
// `options.on_warning` is set. `context` must outlive the client.
absl::StatusOr<std::unique_ptr<k8s::Client>> ConnectToCluster(Context& context,
                                                              const std::string& kube_context,
                                                              k8s::ClientOptions options = {});

}  // namespace muster::cli
