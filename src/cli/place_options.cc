#include "cli/place_options.h"

namespace muster::cli {

nlohmann::json PlaceOptions::ToJson() const {
  nlohmann::json place;
  if (!kubernetes_namespace.empty()) place["namespace"] = kubernetes_namespace;
  if (!kube_context.empty()) place["context"] = kube_context;
  if (!hosts.empty()) place["--hosts"] = hosts;
  return place;
}

void AddPlaceOptions(Command& command, PlaceOptions* options) {
  command.Option("--on", &options->platform, "Platform: local, ssh or kubernetes");
  command.Option("-n,--namespace", &options->kubernetes_namespace, "Kubernetes: the namespace");
  command.Option("--context", &options->kube_context, "Kubernetes: the kubeconfig's context");
}

}  // namespace muster::cli
