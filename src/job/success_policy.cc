#include "job/success_policy.h"

namespace muster::job {

std::optional<cluster::TaskId> DecidingTask(const JobSpec& spec) {
  const auto chief = ChiefTask(spec);
  if (!chief || spec.policies.success == SuccessPolicy::kChief) return chief;
  const bool kubeflow = spec.format != JobFormat::kNative && IsChiefRole(chief->role);
  return kubeflow ? chief : std::nullopt;
}

bool HasSucceeded(const JobSpec& spec, absl::FunctionRef<bool(const cluster::TaskId&)> succeeded) {
  if (const auto deciding = DecidingTask(spec)) return succeeded(*deciding);
  bool any = false;
  for (const RoleSpec& role : spec.roles) {
    if (ServesOthers(spec, role.name)) continue;
    for (int i = 0; i < role.replicas; ++i) {
      if (!succeeded({role.name, i})) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace muster::job
