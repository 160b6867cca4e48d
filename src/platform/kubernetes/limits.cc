#include "platform/kubernetes/limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/url.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

void AddPolicyLimits(const JobSpec& spec, std::vector<Limit>& limits) {
  if (spec.policies.stall) {
    limits.push_back({"policies: stall: nobody watches the progress of its tasks"});
  }
  if (spec.policies.start_timeout != Policies().start_timeout) {
    limits.push_back(
        {"policies: start_timeout: pods are waited for as long as it takes; only the built-in "
         "trainer's tasks give up on each other"});
  }
  AddBackoffLimit(spec, "the operator decides how long it waits before a restart", limits);
}

// Manifests of v1alpha1 are submitted as kubeflow.org/v1 TFJobs, which do not have these fields.
void AddOldManifestLimits(const JobSpec& spec, std::vector<Limit>& limits) {
  if (spec.policies.chief) {
    const JobSpec without{.roles = spec.roles};
    const auto chief = ChiefTask(without);
    limits.push_back(
        {absl::StrCat("terminationPolicy: ", chief ? chief->ToString() : "no task",
                      " decides how the job ends, not ", spec.policies.chief->ToString())});
  }
  if (spec.format != JobFormat::kTfJobV1Alpha1 || !spec.kubernetes.is_object()) return;
  const std::pair<const char*, const char*> dropped[] = {
      {"tensorboard", "none is started; `notebook` of Muster's own job file has one"},
      {"runtimeId", "names are made of the run's id"},
      {"tfImage", "a PS without a template runs Muster's trainer"}};
  for (const auto& [key, instead] : dropped) {
    if (spec.kubernetes.contains(key)) limits.push_back({absl::StrCat(key, ": ", instead)});
  }
}

bool MountsVolumes(const JobSpec& spec) {
  const auto mounts = [](const Json& fragments) {
    return fragments.is_object() &&
           fragments.value("container", Json::object()).contains("volumeMounts");
  };
  return mounts(spec.kubernetes) ||
         std::any_of(spec.roles.begin(), spec.roles.end(), [&](const RoleSpec& role) {
           return mounts(role.kubernetes) || !role.pod.is_null();
         });
}

}  // namespace

std::vector<Limit> LimitsOf(const JobSpec& spec) {
  std::vector<Limit> limits;
  for (const RoleSpec& role : spec.roles) {
    if (role.ready == Readiness::kListening) {
      limits.push_back({NotOfRole(role, "ready", "a pod is up when its container runs")});
    }
    if (!role.addresses.empty()) {
      limits.push_back(
          {NotOfRole(role, "addresses", "tasks are reached by services of their own")});
    }
  }
  AddPolicyLimits(spec, limits);
  AddOldManifestLimits(spec, limits);
  AddHostLimits(spec, limits);
  if (spec.train.is_null() && !spec.model_dir.empty() && !storage::IsRemote(spec.model_dir) &&
      !MountsVolumes(spec)) {
    limits.push_back({absl::StrCat("model_dir: ", spec.model_dir,
                                   " is a folder in each pod, gone with it; use a URL (gs://, "
                                   "s3://, hdfs://), or mount a volume there")});
  }
  return limits;
}

}  // namespace muster::kubernetes
