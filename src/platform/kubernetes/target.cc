#include "platform/kubernetes/target.h"

#include "manifest/names.h"

namespace muster::kubernetes {

k8s::ObjectKey KeyOf(const job::Submission& submission) {
  const job::KubernetesTarget target = job::TargetOf<job::KubernetesTarget>(submission);
  return {target.ns, target.object.name.empty() ? submission.id : target.object.name};
}

job::JobSpec SpecInCluster(const job::Submission& submission) {
  job::JobSpec spec = submission.spec;
  spec.name = KeyOf(submission).name;
  if (!submission.resumed_from.empty()) spec.env["MUSTER_RESUME"] = "1";
  if (submission.resume_step) {
    spec.env["MUSTER_RESUME_STEP"] = std::to_string(*submission.resume_step);
  }
  // Another value of a variable makes the operator restart the pods.
  if (submission.generation != 0) {
    spec.env["MUSTER_GENERATION"] = std::to_string(submission.generation);
  }
  return spec;
}

cluster::ClusterSpec AddressesOf(const job::Submission& submission) {
  return manifest::Addresses(SpecInCluster(submission),
                             job::TargetOf<job::KubernetesTarget>(submission).ns, "");
}

}  // namespace muster::kubernetes
