#include "cli/cluster.h"

#include "absl/strings/str_cat.h"
#include "platform/kubernetes/target.h"

namespace muster::cli {

std::string TrainerImage() { return absl::StrCat("muster-trainer:", MUSTER_VERSION); }

absl::StatusOr<std::unique_ptr<k8s::Client>> ConnectToCluster(Context& context,
                                                              const std::string& kube_context,
                                                              k8s::ClientOptions options) {
  if (!options.on_warning) {
    options.on_warning = [&context](const std::string& text) { context.err().Note(text); };
  }
  return kubernetes::Connect({.context = kube_context}, std::move(options));
}

}  // namespace muster::cli
