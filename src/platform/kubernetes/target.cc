#include "platform/kubernetes/target.h"

#include "base/variables.h"
#include "manifest/names.h"

namespace muster::kubernetes {

absl::StatusOr<std::unique_ptr<k8s::Client>> Connect(const KubernetesTarget& target,
                                                     k8s::ClientOptions options) {
  const Variables process = ProcessVariables();
  // A kubeconfig in the target overrides the one in the environment.
  const Variables variables = [&](const std::string& name) {
    return name == "KUBECONFIG" && !target.kubeconfig.empty() ? target.kubeconfig : process(name);
  };
  auto config = k8s::FindCluster(variables, target.context);
  if (!config.ok()) return config.status();
  options.http = net::HttpOptions::FromEnvironment();
  return k8s::Client::Create(*std::move(config), std::move(options));
}

k8s::ObjectKey KeyOf(const Submission& submission) {
  const KubernetesTarget target = TargetOf<KubernetesTarget>(submission);
  return {target.ns, target.object.name.empty() ? submission.id : target.object.name};
}

JobSpec SpecInCluster(const Submission& submission) {
  JobSpec spec = submission.spec;
  spec.name = KeyOf(submission).name;
  if (!submission.resumed_from.empty()) spec.env["MUSTER_RESUME"] = "1";
  if (submission.resume_step) {
    spec.env["MUSTER_RESUME_STEP"] = std::to_string(*submission.resume_step);
  }
  return spec;
}

ClusterSpec AddressesOf(const Submission& submission) {
  return manifest::Addresses(SpecInCluster(submission), TargetOf<KubernetesTarget>(submission).ns,
                             "");
}

}  // namespace muster::kubernetes
