// Which host holds which task. Pure: the same job and hosts always come to the same.
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

// From a task to the index of its host in `hosts`.
//
// - A host holds only roles that it may hold, and no more tasks than it has slots. Where some host
//   has slots, one without has one slot; where none has, the tasks share all hosts evenly.
// - The tasks of a role are spread: each goes to the host with the fewest of its role; among those
// to
//   one that names the role, then to the one with the fewest tasks, then to the first. The chief
//   chooses first, the other roles in the job's order.
// - A task stays where `existing` (task to the name of a host) has it, if it may be there. Such a
//   task is moved only when another would find no place otherwise.
//
// FailedPrecondition when tasks are left without a place, which is only so when there is no way to
// place all of them: says how many of which roles, and what to do.
absl::StatusOr<std::map<TaskId, size_t>> Place(const JobSpec& spec,
                                               const std::vector<HostSpec>& hosts,
                                               const std::map<TaskId, std::string>& existing = {});

}  // namespace muster::ssh
