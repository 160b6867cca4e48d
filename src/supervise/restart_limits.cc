#include "supervise/restart_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "job/restart_policy.h"

namespace muster::supervise {
namespace {

// Only `always` restarts a task that has succeeded.
bool PolicyRestarts(job::RestartPolicy policy, const AttemptEnd& end) {
  return end.exit_code == 0 ? policy == job::RestartPolicy::kAlways
                            : job::RetriesFailure(policy, end.exit_code);
}

}  // namespace

bool MayRestart(const job::RoleSpec& role, const job::Policies& policies, int restarts,
                const AttemptEnd& end) {
  return end.may_retry && restarts < policies.max_restarts && PolicyRestarts(role.restart, end);
}

absl::Duration RestartDelay(const job::Policies& policies, int restarts) {
  absl::Duration delay = policies.backoff;
  for (int i = 1; i < restarts && delay < policies.max_backoff; ++i) delay *= 2;
  return std::min(delay, std::max(policies.max_backoff, policies.backoff));
}

std::string WhyFinal(const job::RoleSpec& role, const job::Policies& policies,
                     const AttemptEnd& end) {
  if (!end.may_retry) return "";
  if (PolicyRestarts(role.restart, end)) {
    if (policies.max_restarts == 0) return "policies.max_restarts is 0";
    return absl::StrCat("max_restarts (", policies.max_restarts, ") exceeded");
  }
  if (role.restart == job::RestartPolicy::kNever) return "its role has `restart: never`";
  const std::string what =
      end.exit_code.has_value() ? absl::StrCat("exit code ", *end.exit_code) : "a failed start";
  return absl::StrCat(what,
                      " is final under `restart: exit-code`; `restart: on-failure` retries it");
}

}  // namespace muster::supervise
