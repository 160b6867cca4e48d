#include "controller/job_key.h"

#include "absl/strings/str_cat.h"
#include "controller/tfjob.h"
#include "launch/kubernetes/pod_status.h"

namespace muster::controller {

std::string JobKey(const k8s::ResourceKind& kind, const std::string& name_space,
                   const std::string& name) {
  return absl::StrCat(kind.group, "/", name_space, "/", name);
}

std::string KeyOfJob(const Json& job) {
  return JobKey(JobKindOf(job), k8s::KeyOf(job).name_space, k8s::NameOf(job));
}

std::string JobKeyOf(const Json& object) {
  const k8s::ResourceKind* kind = OwnerKindOf(object);
  const std::string name = k8s::LabelOf(object, kubernetes::kTfJobNameLabel);
  if (kind == nullptr || name.empty()) return "";
  return JobKey(*kind, k8s::KeyOf(object).name_space, name);
}

}  // namespace muster::controller
