// Cleans up after a supervisor and a guard that were both killed.
#pragma once

#include <string>

namespace muster::supervise {

// Kills every process of this user with the job's id in its environment. Returns the number of
// processes killed.
int KillLeftovers(const std::string& job_id);

}  // namespace muster::supervise
