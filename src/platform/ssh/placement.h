// Assigns tasks to hosts. Pure and deterministic.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "job/host_spec.h"
#include "job/job_spec.h"

namespace muster::ssh {

// Returns the index in `hosts` of the host of each task.
//
// - A host holds only roles that it allows, and no more tasks than it has slots. If any host has
//   slots, a host without has one; if none has, the tasks share all hosts evenly.
// - The tasks of a role are spread: each goes to the host with the fewest tasks of its role; ties
//   go to a host that names the role, then to the one with the fewest tasks, then to the first.
//   The chief is placed first, the other roles in the job's order.
// - A task stays on its host in `existing` (task to host name) if that is allowed. It is moved only
//   if another task could not be placed otherwise.
//
// Returns FailedPrecondition, with the number of unplaced tasks by role and the remedy, only if no
// complete placement exists.
absl::StatusOr<std::map<cluster::TaskId, size_t>> Place(
    const job::JobSpec& spec, const std::vector<job::HostSpec>& hosts,
    const std::map<cluster::TaskId, std::string>& existing = {});

}  // namespace muster::ssh
