#include "platform/kubernetes/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/storage_schemes.h"
#include "storage/url.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

void AddPolicyLimits(const job::JobSpec& spec, std::vector<platform::Limit>& limits) {
  if (spec.policies.stall) {
    limits.push_back({"policies: stall: stalled tasks are not detected"});
  }
  if (spec.policies.start_timeout != job::Policies().start_timeout) {
    limits.push_back(
        {"policies: start_timeout: the operator waits for pods without a limit; only the built-in "
         "trainer's tasks time out"});
  }
  platform::AddBackoffLimit(spec, "the operator determines the delay before a restart", limits);
}

bool MountsVolumes(const job::JobSpec& spec) {
  const auto mounts = [](const Json& fragments) {
    return fragments.is_object() &&
           fragments.value("container", Json::object()).contains("volumeMounts");
  };
  return mounts(spec.kubernetes) ||
         std::any_of(spec.roles.begin(), spec.roles.end(), [&](const job::RoleSpec& role) {
           return mounts(role.kubernetes) || !role.pod.is_null();
         });
}

}  // namespace

std::vector<platform::Limit> LimitsOf(const job::JobSpec& spec) {
  std::vector<platform::Limit> limits;
  for (const job::RoleSpec& role : spec.roles) {
    if (role.ready == job::Readiness::kListening) {
      limits.push_back({platform::RoleLimit(role, "ready", "a pod is up when its container runs")});
    }
    if (!role.addresses.empty()) {
      limits.push_back(
          {platform::RoleLimit(role, "addresses", "each task is reached through its own service")});
    }
  }
  AddPolicyLimits(spec, limits);
  platform::AddHostLimits(spec, limits);
  if (spec.train.is_null() && !spec.model_dir.empty() && !storage::IsRemote(spec.model_dir) &&
      !MountsVolumes(spec)) {
    limits.push_back({absl::StrCat("model_dir: ", spec.model_dir,
                                   " is a folder in each pod and is deleted with it; use a URL (",
                                   base::RemoteSchemes(), "), or mount a volume there")});
  }
  return limits;
}

}  // namespace muster::kubernetes
