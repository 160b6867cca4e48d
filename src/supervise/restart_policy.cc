#include "supervise/restart_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kFirstRetryable = 128;  // 128 + n is the exit code for signal n
constexpr int kNeverStarted = 1;      // exit code assumed for an attempt that never started

bool PolicyRestarts(RestartPolicy policy, int code) {
  switch (policy) {
    case RestartPolicy::kNever:
      return false;
    case RestartPolicy::kOnFailure:
      return code != 0;
    case RestartPolicy::kAlways:
      return true;
    case RestartPolicy::kExitCode:
      return code >= kFirstRetryable;
  }
  return false;
}

}  // namespace

bool MayRestart(const RoleSpec& role, const Policies& policies, int restarts,
                const AttemptEnd& end) {
  return end.may_retry && restarts < policies.max_restarts &&
         PolicyRestarts(role.restart, end.exit_code.value_or(kNeverStarted));
}

absl::Duration RestartDelay(const Policies& policies, int restarts) {
  absl::Duration delay = policies.backoff;
  for (int i = 1; i < restarts && delay < policies.max_backoff; ++i) delay *= 2;
  return std::min(delay, std::max(policies.max_backoff, policies.backoff));
}

std::string WhyFinal(const RoleSpec& role, const Policies& policies, const AttemptEnd& end) {
  if (!end.may_retry) return "";
  const int code = end.exit_code.value_or(kNeverStarted);
  if (PolicyRestarts(role.restart, code)) {
    if (policies.max_restarts == 0) return "policies.max_restarts is 0";
    return absl::StrCat("max_restarts (", policies.max_restarts, ") exceeded");
  }
  if (role.restart == RestartPolicy::kNever) return "its role has `restart: never`";
  const std::string what =
      end.exit_code.has_value() ? absl::StrCat("exit code ", code) : "a failed start";
  return absl::StrCat(what,
                      " is final under `restart: exit-code`; `restart: on-failure` retries it");
}

}  // namespace muster
