#include "platform/unsupported.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "job/format/pod_template.h"

namespace muster::platform {
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
                              suspend ? "the job starts immediately" : kForKubernetesAlone)});
  }
}

// Returns true if the container of a task has arguments. REQUIRES: `pod` is valid.
bool HasArgs(const nlohmann::json& pod) {
  const nlohmann::json& containers = pod["spec"]["containers"];
  return std::any_of(containers.begin(), containers.end(), [](const nlohmann::json& container) {
    const auto args = container.find("args");
    return container.contains("name") && container["name"] == job::kTensorflowContainer &&
           args != container.end() && !args->empty();
  });
}

}  // namespace

std::string RoleLimit(const job::RoleSpec& role, absl::string_view field,
                      absl::string_view instead) {
  return absl::StrCat("role '", role.name, "': ", field, ": ", instead);
}

void AddKubernetesLimits(const job::JobSpec& spec, std::vector<Limit>& limits) {
  if (!spec.notebook.is_null()) {
    const bool alone = spec.roles.empty();
    limits.push_back(
        {.what = absl::StrCat("notebook: not started with the job; `muster notebook` starts it on "
                              "this machine",
                              alone ? ", and the file has nothing else; `muster render` "
                                      "prints its manifests"
                                    : ""),
         .fatal = alone});
  }
  if (!spec.kubernetes.is_object()) return;
  if (spec.format == job::JobFormat::kNative) {
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

void AddEntryPointLimits(const job::JobSpec& spec, std::vector<Limit>& limits) {
  for (const job::RoleSpec& role : spec.roles) {
    if (!job::HasEntryPoint(role)) continue;
    const bool only_args = HasArgs(role.pod);
    limits.push_back(
        {.what = RoleLimit(role, "command",
                           absl::StrCat("missing: the container '", job::kTensorflowContainer, "' ",
                                        only_args ? "passes `args` to" : "runs",
                                        " the entry point of ", role.image,
                                        ", and tasks of this platform run without images; add the "
                                        "program, such as `command: [python, train.py]`")),
         .fatal = true});
  }
}

void AddHostLimits(const job::JobSpec& spec, std::vector<Limit>& limits) {
  if (!spec.hosts.empty()) limits.push_back({.what = "hosts: used only with --on ssh"});
  if (spec.policies.host_timeout != job::Policies().host_timeout) {
    limits.push_back({.what = "policies: host_timeout: used only with --on ssh"});
  }
}

void AddBackoffLimit(const job::JobSpec& spec, absl::string_view instead,
                     std::vector<Limit>& limits) {
  const job::Policies usual;
  if (spec.policies.backoff == usual.backoff && spec.policies.max_backoff == usual.max_backoff) {
    return;
  }
  limits.push_back({.what = absl::StrCat("policies: backoff and max_backoff: ", instead)});
}

}  // namespace muster::platform
