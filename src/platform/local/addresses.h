// Assigns addresses to the tasks of a local job.
#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "platform/platform.h"
#include "supervise/ports.h"

namespace muster::local {

// Returns the addresses of the tasks of `spec`: the one fixed by the user, else the one in
// `current`, else kUnassigned. A role's `port` is used in native job files only: in a manifest it
// is the port of a pod, whereas local tasks share one machine.
ClusterSpec PlanAddresses(const JobSpec& spec, const ClusterSpec& current);

// Returns InvalidArgument if the user fixed an address that is not on this machine.
absl::Status CheckAddresses(const JobSpec& spec);

// Completes PlanAddresses(): picks a port for each unassigned task and reserves every port that
// `current` does not contain. On failure no new port stays reserved. Returns InvalidArgument as
// CheckAddresses() does.
absl::StatusOr<ClusterSpec> AssignAddresses(const JobSpec& spec, const ClusterSpec& current,
                                            PortReservations& ports);

// Returns true if Muster picks the task's port and may therefore change it.
bool IsPicked(const JobSpec& spec, const TaskId& task);

std::set<int> PortsOf(const ClusterSpec& cluster);

}  // namespace muster::local
