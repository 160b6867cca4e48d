// Which address each task of a local job has.
#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "launch/platform.h"
#include "launch/ports.h"

namespace muster::local {

// The addresses of `spec`'s tasks: those that the user fixed, else the one that the task has in
// `current`, else kUnassigned. A role's `port` counts on a native job file only: the port of a
// manifest is that of a pod, and all tasks share this machine.
ClusterSpec PlanAddresses(const JobSpec& spec, const ClusterSpec& current);

// InvalidArgument for an address that the user fixed and that is not on this machine.
absl::Status CheckAddresses(const JobSpec& spec);

// Reserves every port that `current` does not have, and picks one for the unassigned.
// InvalidArgument as CheckAddresses(); then nothing new stays reserved.
absl::StatusOr<ClusterSpec> AssignAddresses(const JobSpec& spec, const ClusterSpec& current,
                                            PortReservations& ports);

// Whether Muster may move the task to another port.
bool IsPicked(const JobSpec& spec, const TaskId& task);

std::set<int> PortsOf(const ClusterSpec& cluster);

}  // namespace muster::local
