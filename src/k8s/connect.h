// Connects to the cluster that the user's settings name.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "k8s/client.h"

namespace muster::k8s {

// Returns a client with the credentials of the kubeconfig, or of the pod that this process runs in.
// `kubeconfig` overrides the files that the environment names, `context` the current context; "" =
// no override. Proxies and certificate authorities are taken from the environment.
absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& kubeconfig,
                                                const std::string& context, ClientOptions options);

}  // namespace muster::k8s
