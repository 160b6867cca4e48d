#include "cli/place_options.h"

namespace muster::cli {

nlohmann::json PlaceOptions::ToJson() const {
  nlohmann::json place;
  if (!kubernetes_namespace.empty()) place["namespace"] = kubernetes_namespace;
  if (!kube_context.empty()) place["context"] = kube_context;
  if (!hosts.empty()) place["--hosts"] = hosts;
  vertex.AddTo(place);
  return place;
}

absl::Status PlaceOptions::Check() const {
  if (vertex.given() && platform != "vertex") {
    return absl::InvalidArgumentError(
        "--project and --region are for jobs on Vertex AI: add --on vertex");
  }
  if (!hosts.empty() && platform != "ssh") {
    return absl::InvalidArgumentError("--hosts is for jobs over SSH: add --on ssh");
  }
  if ((platform == "ssh" || platform == "vertex") &&
      !(kubernetes_namespace.empty() && kube_context.empty())) {
    return absl::InvalidArgumentError("a namespace or a context is for jobs on Kubernetes");
  }
  return absl::OkStatus();
}

void AddPlaceOptions(Command& command, PlaceOptions* options, const std::string& namespace_names) {
  command.Option("--on", &options->platform, "Platform: local, ssh, kubernetes or vertex");
  command.Group(kKubernetesGroup);
  command.Option(namespace_names, &options->kubernetes_namespace, "The namespace");
  command.Option("--context", &options->kube_context, "The context of the kubeconfig");
  AddVertexPlaceOptions(command, &options->vertex);
}

}  // namespace muster::cli
