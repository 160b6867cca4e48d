#include "cli/target_options.h"

namespace muster::cli {

Target TargetOptions::ToTarget() const {
  if (platform == "ssh") return SshTarget{.hosts = hosts};
  if (platform == "kubernetes") {
    return KubernetesTarget{.context = kube_context, .ns = kubernetes_namespace};
  }
  if (platform != "vertex") return LocalTarget();
  VertexTarget target;
  vertex.AddTo(target);
  return target;
}

bool TargetOptions::in_cluster() const {
  return !kubernetes_namespace.empty() || !kube_context.empty();
}

absl::Status TargetOptions::Check() const {
  if (vertex.given() && platform != "vertex") {
    return absl::InvalidArgumentError(
        "--project and --region are for jobs on Vertex AI: add --on vertex");
  }
  if (!hosts.empty() && platform != "ssh") {
    return absl::InvalidArgumentError("--hosts is for jobs over SSH: add --on ssh");
  }
  if (in_cluster() && platform == "local") {
    return absl::InvalidArgumentError(
        "a namespace or a context is for a job on Kubernetes: add --on kubernetes");
  }
  if (in_cluster() && (platform == "ssh" || platform == "vertex")) {
    return absl::InvalidArgumentError("a namespace or a context is for jobs on Kubernetes");
  }
  return absl::OkStatus();
}

void AddTargetOptions(Command& command, TargetOptions* options,
                      const std::string& namespace_names) {
  command.Option("--on", &options->platform, "Platform: local, ssh, kubernetes or vertex");
  command.Group(kKubernetesGroup);
  command.Option(namespace_names, &options->kubernetes_namespace, "The namespace");
  command.Option("--context", &options->kube_context, "The context of the kubeconfig");
  AddVertexTargetOptions(command, &options->vertex);
}

}  // namespace muster::cli
