// The Kubernetes cluster that a command speaks to.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "k8s/client.h"

namespace muster::cli {

// What a pod runs unless the user names another image.
std::string TrainerImage();
inline constexpr char kNotebookImage[] = "jupyter/tensorflow-notebook";

// Signed in as the kubeconfig's context, or as the pod that this runs in. What the server warns of
// is shown.
absl::StatusOr<std::unique_ptr<k8s::Client>> ConnectToCluster(Context& context,
                                                              const std::string& kube_context,
                                                              k8s::ClientOptions options = {});

}  // namespace muster::cli
