#include "cli/cluster.h"

#include "base/status_macros.h"
#include "base/variables.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<k8s::Client>> ConnectToCluster(Context& context,
                                                              const std::string& kube_context,
                                                              k8s::ClientOptions options) {
  MUSTER_ASSIGN_OR_RETURN(k8s::ClusterConfig config,
                          k8s::FindCluster(ProcessVariables(), kube_context));
  options.http = net::HttpOptions::FromEnvironment();
  if (!options.on_warning) {
    options.on_warning = [&context](const std::string& text) { context.err().Note(text); };
  }
  return k8s::Client::Create(std::move(config), std::move(options));
}

}  // namespace muster::cli
