#include "platform/kubernetes/notebook.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "k8s/error.h"
#include "manifest/notebook.h"

namespace muster::kubernetes {
namespace {

// Returns the external address of a LoadBalancer service, or "" if it has none.
std::string AddressOf(const k8s::Json& service) {
  const k8s::Json* ingress = k8s::Find(service, "/status/loadBalancer/ingress");
  if (ingress == nullptr || !ingress->is_array() || ingress->empty()) return "";
  const std::string ip = k8s::TextAt(ingress->front(), "/ip");
  return ip.empty() ? k8s::TextAt(ingress->front(), "/hostname") : ip;
}

std::vector<std::string> Kubectl(const job::KubernetesTarget& target) {
  std::vector<std::string> words = {"kubectl", "--namespace", target.ns};
  if (!target.context.empty()) words.insert(words.end(), {"--context", target.context});
  return words;
}

}  // namespace

absl::StatusOr<platform::NotebookAccess> FindNotebook(k8s::Client& client, const job::JobSpec& spec,
                                                      const job::KubernetesTarget& target) {
  const k8s::ObjectKey key{target.ns, manifest::NotebookName(spec)};
  const auto service = client.Get(k8s::kServices, key);
  if (k8s::IsNoSuchObject(service.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no service '", key.name, "' in namespace '", key.ns,
        "': start the job (`muster run --on kubernetes`, or `muster render` and kubectl apply)"));
  }
  MUSTER_RETURN_IF_ERROR(service.status());
  MUSTER_ASSIGN_OR_RETURN(const k8s::Json deployment, client.Get(k8s::kDeployments, key));
  platform::NotebookAccess access{
      .name = key.name,
      .ready = k8s::Find(deployment, "/status/readyReplicas") != nullptr,
      .address = AddressOf(*service),
      .forward = Kubectl(target),
      .logs = Kubectl(target),
      .has_password = !spec.notebook.value("password", "").empty()};
  access.forward.insert(access.forward.end(), {"port-forward", absl::StrCat("service/", key.name)});
  access.logs.insert(access.logs.end(),
                     {"logs", absl::StrCat("deployment/", key.name), "notebook"});
  for (const k8s::Json& port : (*service)["spec"]["ports"]) {
    access.ports.push_back({k8s::TextAt(port, "/name"), port.value("port", 0)});
    access.forward.push_back(absl::StrCat(port.value("port", 0)));
  }
  return access;
}

}  // namespace muster::kubernetes
