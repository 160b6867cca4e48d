// Changes running jobs.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "k8s/error.h"
#include "manifest/manifests.h"
#include "platform/kubernetes/apply.h"
#include "platform/kubernetes/platform.h"
#include "supervise/job_dir.h"

namespace muster::kubernetes {
namespace {

// Returns the submission of a running job after its update to `next`.
job::Submission Continued(const job::Submission& current, job::Submission next) {
  next.id = current.id;
  const job::KubernetesTarget own = job::TargetOf<job::KubernetesTarget>(next);
  const job::KubernetesFiles& files = own.files;
  next.target = current.target;
  job::KubernetesTarget& target = job::MutableTargetOf<job::KubernetesTarget>(next);
  if (!own.trainer_image.empty() || !own.image_repository.empty()) {
    target.trainer_image = own.trainer_image;
    target.image_repository = own.image_repository;
  }
  // An edit that does not concern the tasks, such as one of the job file, leaves them their files.
  if (files.digest.empty() || target.files.digest.empty() ||
      next.working_dir != current.working_dir || next.version != current.version) {
    target.files.digest = files.digest;
    target.files.parts = files.parts;
  }
  target.files.roles = files.roles;
  next.resumed_from = current.resumed_from;
  next.resume_step = current.resume_step;
  return next;
}

// Returns the pod templates by role. REQUIRES: the TFJob is the last object.
std::map<std::string, Json> TemplatesOf(const std::vector<manifest::Object>& objects) {
  std::map<std::string, Json> templates;
  for (const auto& [title, replica] : objects.back()["spec"]["tfReplicaSpecs"].items()) {
    templates[absl::AsciiStrToLower(title)] = replica["template"];
  }
  return templates;
}

}  // namespace

absl::StatusOr<supervise::UpdatePlan> KubernetesPlatform::PlanUpdate(
    const job::JobRecord& job, const std::vector<job::TaskRecord>&, const job::Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission current,
                          supervise::JobDir(job.directory).LoadSubmission());
  const job::Submission changed = Continued(current, next);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> before, Render(current));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> after, Render(changed));
  const auto old_templates = TemplatesOf(before), new_templates = TemplatesOf(after);
  const std::vector<cluster::TaskId> old_tasks = current.spec.Tasks(),
                                     new_tasks = changed.spec.Tasks();
  const auto has = [](const std::vector<cluster::TaskId>& tasks, const cluster::TaskId& task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  supervise::UpdatePlan plan;
  for (const cluster::TaskId& task : new_tasks) {
    if (!has(old_tasks, task)) {
      plan.added.push_back(task);
    } else if (old_templates.at(task.role) != new_templates.at(task.role)) {
      plan.restarted.push_back(task);
    } else {
      plan.kept.push_back(task);
    }
  }
  for (const cluster::TaskId& task : old_tasks) {
    if (!has(new_tasks, task)) plan.removed.push_back(task);
  }
  plan.policies_changed = plan.empty() && current.spec != next.spec;
  return plan;
}

absl::Status KubernetesPlatform::Update(const job::JobRecord& job, const job::Submission& next) {
  const supervise::JobDir dir(job.directory);
  MUSTER_ASSIGN_OR_RETURN(const job::Submission current, dir.LoadSubmission());
  job::Submission changed = Continued(current, next);
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client,
                          ClientFor(job::TargetOf<job::KubernetesTarget>(changed)));
  const job::KubernetesFiles old_files = job::TargetOf<job::KubernetesTarget>(current).files;
  std::vector<std::string> parts, old_parts;
  if (job::TargetOf<job::KubernetesTarget>(changed).files.digest != old_files.digest) {
    MUSTER_ASSIGN_OR_RETURN(parts, PackForSending(changed));
    old_parts.resize(
        static_cast<size_t>(old_files.parts));  // their names are enough to delete them
  }
  const job::JobSpec spec = SpecInCluster(changed);
  // The certificates are kept across updates: a new set is made only if the secret is missing.
  std::optional<job::JobTls> tls;
  if (manifest::HasTls(spec)) {
    const auto secret = client->Get(k8s::kSecrets, {KeyOf(changed).ns, manifest::TlsName(spec)});
    if (k8s::IsNoSuchObject(secret.status())) {
      MUSTER_ASSIGN_OR_RETURN(tls, job::MakeJobTls(changed.id));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> objects,
                          Render(changed, std::move(tls), std::move(parts)));
  std::vector<AppliedObject> applied;
  MUSTER_RETURN_IF_ERROR(
      ApplyObjects(*client, objects, &applied, [this](const absl::Status& status) {
        Warn(status);
      }).status());
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(changed));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> before,
                          Render(current, std::nullopt, std::move(old_parts)));
  return DeleteObsolete(*client, before, applied,
                        [this](const absl::Status& status) { Warn(status); });
}

}  // namespace muster::kubernetes
