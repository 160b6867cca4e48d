#include "k8s/connect.h"

#include <utility>

#include "base/status_macros.h"
#include "base/variables.h"

namespace muster::k8s {

absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& kubeconfig,
                                                const std::string& context, ClientOptions options) {
  const base::Variables process = base::ProcessVariables();
  const base::Variables variables = [&](const std::string& name) {
    return name == "KUBECONFIG" && !kubeconfig.empty() ? kubeconfig : process(name);
  };
  MUSTER_ASSIGN_OR_RETURN(auto config, FindCluster(variables, context));
  options.http = net::HttpOptions::FromEnvironment();
  return Client::Create(std::move(config), std::move(options));
}

}  // namespace muster::k8s
