#include "controller/admission_warnings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/spelling.h"
#include "codec/diagnostics.h"
#include "controller/tfjob.h"

namespace muster::controller {
namespace {

constexpr size_t kMost = 20;

using Fields = std::vector<std::string>;

const Fields& TemplateFields() {
  static const auto& fields = *new Fields{"metadata", "spec"};
  return fields;
}

// Of Kubernetes 1.20 to 1.34.
const Fields& PodFields() {
  static const auto& fields = *new Fields{
      "activeDeadlineSeconds",
      "affinity",
      "automountServiceAccountToken",
      "containers",
      "dnsConfig",
      "dnsPolicy",
      "enableServiceLinks",
      "ephemeralContainers",
      "hostAliases",
      "hostIPC",
      "hostNetwork",
      "hostPID",
      "hostUsers",
      "hostname",
      "hostnameOverride",
      "imagePullSecrets",
      "initContainers",
      "nodeName",
      "nodeSelector",
      "os",
      "overhead",
      "preemptionPolicy",
      "priority",
      "priorityClassName",
      "readinessGates",
      "resourceClaims",
      "resources",
      "restartPolicy",
      "runtimeClassName",
      "schedulerName",
      "schedulingGates",
      "securityContext",
      "serviceAccount",
      "serviceAccountName",
      "setHostnameAsFQDN",
      "shareProcessNamespace",
      "subdomain",
      "terminationGracePeriodSeconds",
      "tolerations",
      "topologySpreadConstraints",
      "volumes",
  };
  return fields;
}

const Fields& ContainerFields() {
  static const auto& fields = *new Fields{
      "args",
      "command",
      "env",
      "envFrom",
      "image",
      "imagePullPolicy",
      "lifecycle",
      "livenessProbe",
      "name",
      "ports",
      "readinessProbe",
      "resizePolicy",
      "resources",
      "restartPolicy",
      "restartPolicyRules",
      "securityContext",
      "startupProbe",
      "stdin",
      "stdinOnce",
      "terminationMessagePath",
      "terminationMessagePolicy",
      "tty",
      "volumeDevices",
      "volumeMounts",
      "workingDir",
  };
  return fields;
}

class Warner {
 public:
  void Look(const std::string& role, const Json& replica) {
    const std::string path = absl::StrCat("spec.tfReplicaSpecs.", role, ".template");
    const Json& pod = ObjectAt(replica, "/template");
    LookFor(path, pod, TemplateFields());
    const Json& spec = ObjectAt(pod, "/spec");
    LookFor(absl::StrCat(path, ".spec"), spec, PodFields());
    if (spec.contains("restartPolicy")) {
      Add(absl::StrCat(path, ".spec.restartPolicy: has no effect; spec.tfReplicaSpecs.", role,
                       ".restartPolicy is the one that counts"));
    }
    const auto containers = spec.find("containers");
    if (containers == spec.end() || !containers->is_array()) return;
    for (size_t i = 0; i < containers->size(); ++i) {
      LookFor(absl::StrCat(path, ".spec.containers[", i, "]"), (*containers)[i], ContainerFields());
    }
  }

  std::vector<std::string> Take() { return std::move(warnings_); }

 private:
  void LookFor(const std::string& path, const Json& object, const Fields& known) {
    if (!object.is_object()) return;
    for (const auto& [name, value] : object.items()) {
      if (warnings_.size() >= kMost) return;
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      Add(absl::StrCat(path, ": unknown field ", codec::Quoted(name), DidYouMean(name, known)));
    }
  }
  void Add(std::string warning) {
    if (warnings_.size() < kMost) warnings_.push_back(std::move(warning));
  }

  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> WarningsOf(const Json& job) {
  Warner warner;
  const Json& specs = ObjectAt(job, "/spec/tfReplicaSpecs");
  for (const auto& [role, replica] : specs.items()) warner.Look(role, replica);
  return warner.Take();
}

}  // namespace muster::controller
