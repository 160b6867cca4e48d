#include "platform/kubernetes/target.h"

#include "manifest/names.h"
#include "manifest/work_files.h"
#include "worktree/command_files.h"

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
  // In pods, the folder of such a role is relative to that of the files.
  const job::KubernetesFiles& files = job::TargetOf<job::KubernetesTarget>(submission).files;
  for (job::RoleSpec& role : spec.roles) {
    if (!manifest::MountsWorkFiles(files, role)) continue;
    role.working_dir = worktree::FolderBelow(submission.working_dir, role).value_or("");
  }
  return spec;
}

cluster::ClusterSpec AddressesOf(const job::Submission& submission) {
  return manifest::Addresses(SpecInCluster(submission),
                             job::TargetOf<job::KubernetesTarget>(submission).ns, "");
}

}  // namespace muster::kubernetes
