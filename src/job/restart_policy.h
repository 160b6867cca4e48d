// The rule that decides which failures are retried, by the RestartPolicy of job/job_spec.h. It
// holds on every platform. Pure.
#pragma once

#include <optional>

#include "job/job_spec.h"

namespace muster::job {

// The exit code that an attempt counts with if it never started or its code is unknown.
inline constexpr int kUnknownExitCode = 1;

// Returns true if a role with `policy` is retried after a failed attempt. `exit_code` is 128 + n
// for signal n; nullopt counts as kUnknownExitCode. Limits on the number of restarts are not
// considered.
bool RetriesFailure(RestartPolicy policy, std::optional<int> exit_code);

}  // namespace muster::job
