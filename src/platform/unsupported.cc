#include "platform/unsupported.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Returns true for the fields of a manifest's runPolicy that `policies` also contains.
bool IsPolicy(absl::string_view key) {
  return key == "activeDeadlineSeconds" || key == "backoffLimit";
}

void AddRunPolicy(const nlohmann::json& policy, std::vector<Limit>& limits) {
  if (!policy.is_object()) return;
  for (const auto& [key, value] : policy.items()) {
    if (IsPolicy(key) || value.is_null() || value == false) continue;
    const bool suspend = key == "suspend";
    limits.push_back(
        {.what = absl::StrCat("runPolicy: ", key, ": ",
                              suspend ? "the job starts at once" : kForKubernetesAlone)});
  }
}

}  // namespace

std::string NotOfRole(const RoleSpec& role, absl::string_view field, absl::string_view instead) {
  return absl::StrCat("role '", role.name, "': ", field, ": ", instead);
}

void AddKubernetesLimits(const JobSpec& spec, std::vector<Limit>& limits) {
  if (!spec.notebook.is_null()) {
    limits.push_back(
        {.what = "notebook: none is started; `muster notebook` is for jobs on Kubernetes"});
  }
  if (!spec.kubernetes.is_object()) return;
  if (spec.format == JobFormat::kNative) {
    limits.push_back({.what = absl::StrCat("kubernetes: ", kForKubernetesAlone)});
    return;
  }
  for (const auto& [key, value] : spec.kubernetes.items()) {
    if (key == "runPolicy") {
      AddRunPolicy(value, limits);
    } else if (key != "labels" && key != "annotations") {  // without effect on the run
      limits.push_back({.what = absl::StrCat(key, ": ", kForKubernetesAlone)});
    }
  }
}

void AddHostLimits(const JobSpec& spec, std::vector<Limit>& limits) {
  if (!spec.hosts.empty()) limits.push_back({.what = "hosts: they are for --on ssh alone"});
  if (spec.policies.host_timeout != Policies().host_timeout) {
    limits.push_back({.what = "policies: host_timeout: it is for --on ssh alone"});
  }
}

void AddBackoffLimit(const JobSpec& spec, absl::string_view instead, std::vector<Limit>& limits) {
  const Policies usual;
  if (spec.policies.backoff == usual.backoff && spec.policies.max_backoff == usual.max_backoff) {
    return;
  }
  limits.push_back({.what = absl::StrCat("policies: backoff and max_backoff: ", instead)});
}

}  // namespace muster
