// Decides whether and when a task is restarted after an attempt has ended.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "job/job_spec.h"
#include "supervise/lifecycle.h"

namespace muster::supervise {

// Returns true if an attempt with this outcome, after `restarts` restarts, is followed by another.
bool MayRestart(const job::RoleSpec& role, const job::Policies& policies, int restarts,
                const AttemptEnd& end);

// Returns the back-off before restart number `restarts`, counted from 1. It doubles up to
// policies.max_backoff.
absl::Duration RestartDelay(const job::Policies& policies, int restarts);

// Returns why a failed attempt is not retried, and the setting that would change it; "" if its
// cause is the explanation because no retry can help. REQUIRES: MayRestart() is false.
std::string WhyFinal(const job::RoleSpec& role, const job::Policies& policies,
                     const AttemptEnd& end);

}  // namespace muster::supervise
