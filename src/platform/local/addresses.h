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
cluster::ClusterSpec PlanAddresses(const job::JobSpec& spec, const cluster::ClusterSpec& current);

// Returns InvalidArgument if the user fixed an address that is not on this machine.
absl::Status CheckAddresses(const job::JobSpec& spec);

// Completes PlanAddresses(): picks a port for each unassigned task and reserves every port that
// `current` does not contain. On failure no new port stays reserved. Returns InvalidArgument as
// CheckAddresses() does.
absl::StatusOr<cluster::ClusterSpec> AssignAddresses(const job::JobSpec& spec,
                                                     const cluster::ClusterSpec& current,
                                                     supervise::PortReservations& ports);

// Returns true if Muster picks the task's port and may therefore change it.
bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task);

std::set<int> PortsOf(const cluster::ClusterSpec& cluster);

}  // namespace muster::local
