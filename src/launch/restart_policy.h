// When a task that has ended is started again.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "job/job_spec.h"
#include "launch/lifecycle.h"

namespace muster {

// Whether an attempt that ended like this, after `restarts` restarts, is followed by another.
bool MayRestart(const RoleSpec& role, const Policies& policies, int restarts,
                const AttemptEnd& end);

// How long to wait before restart number `restarts`, counted from 1.
absl::Duration RestartDelay(const Policies& policies, int restarts);

// Why a failed attempt that MayRestart refuses is the last, and the setting that would change it.
// "" when its cause says so: no attempt could do better.
std::string WhyFinal(const RoleSpec& role, const Policies& policies, const AttemptEnd& end);

}  // namespace muster
