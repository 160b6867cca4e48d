#include "cli/cluster/cluster.h"

#include "k8s/connect.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<k8s::Client>> ConnectToCluster(Context& context,
                                                              const std::string& kube_context,
                                                              k8s::ClientOptions options) {
  if (!options.on_warning) {
    options.on_warning = [&context](const std::string& text) { context.err().Note(text); };
  }
  return k8s::Connect("", kube_context, std::move(options));
}

}  // namespace muster::cli
