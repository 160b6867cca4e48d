#include "controller/job_key.h"

#include "absl/strings/str_cat.h"
#include "controller/rules/tfjob.h"
#include "manifest/pod_status.h"

namespace muster::controller {

std::string JobKey(const k8s::ResourceKind& kind, const std::string& ns, const std::string& name) {
  return absl::StrCat(kind.group, "/", ns, "/", name);
}

std::string KeyOfJob(const Json& job) {
  return JobKey(JobKindOf(job), k8s::KeyOf(job).ns, k8s::NameOf(job));
}

std::string OwnerKeyOf(const Json& object) {
  const k8s::ResourceKind* kind = OwnerKindOf(object);
  const std::string name = k8s::LabelOf(object, manifest::kTfJobNameLabel);
  if (kind == nullptr || name.empty()) return "";
  return JobKey(*kind, k8s::KeyOf(object).ns, name);
}

}  // namespace muster::controller
