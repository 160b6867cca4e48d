#include "platform/kubernetes/nodes.h"

#include "absl/strings/str_cat.h"
#include "base/text/json.h"

namespace muster::kubernetes {
namespace {

// Returns the first of the labels that the node has. Older clusters have the second one.
std::string FirstLabel(const k8s::Json& node, const char* name, const char* older) {
  std::string value = k8s::LabelOf(node, name);
  return value.empty() ? k8s::LabelOf(node, older) : value;
}

}  // namespace

void Describe(const k8s::Json& node, platform::Machine& machine) {
  // "gce://project/zone/name", "aws:///zone/id"
  const std::string id = k8s::TextAt(node, "/spec/providerID");
  machine.provider = id.substr(0, id.find("://"));
  machine.region =
      FirstLabel(node, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region");
  machine.size =
      FirstLabel(node, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type");
  const k8s::Json& status = base::MemberOf(node, "status");
  if (machine.size.empty()) {
    const k8s::Json& capacity = base::MemberOf(status, "capacity");
    const std::string cpus = base::TextMember(capacity, "cpu");
    if (!cpus.empty()) {
      machine.size = absl::StrCat(cpus, " cpus, ", base::TextMember(capacity, "memory"));
    }
  }
  for (const k8s::Json& address : base::MemberOf(status, "addresses")) {
    if (base::TextMember(address, "type") == "ExternalIP") {
      machine.public_ip = base::TextMember(address, "address");
    }
  }
  for (const k8s::Json& condition : base::MemberOf(status, "conditions")) {
    if (base::TextMember(condition, "type") == "Ready" &&
        base::TextMember(condition, "status") != "True" &&
        machine.status == platform::kMachineConnected) {
      machine.status = "NotReady";
    }
  }
}

}  // namespace muster::kubernetes
