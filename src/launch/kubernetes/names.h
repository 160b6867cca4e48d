// What the objects of a job are called in a cluster, and where its tasks are reached. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"

namespace muster::kubernetes {

inline constexpr char kJobLabel[] = "muster/job";
inline constexpr char kRoleLabel[] = "muster/role";
inline constexpr char kIndexLabel[] = "muster/index";

// Whether the job is in a TFJob: a manifest's, or a native one that `muster run` has put into one
// (job/tfjob_format.h), whose roles have pod templates, too.
bool IsTfJob(const JobSpec& spec);

// Of a task's pod, its service and what runs it: <job>-<role>-<index>, as TFJob has it; of a
// rendered cluster <role>-<index>.
std::string TaskName(const JobSpec& spec, const TaskId& task);

// The port that a task listens on: each pod has an address of its own, so all tasks of a role share
// it.
int PortOf(const RoleSpec& role);
// What it is called in the pod and its service.
absl::string_view PortName(const JobSpec& spec);

// Every task by the name of its service. `domain`: that of the cluster, "" when pods need not say
// it.
ClusterSpec Addresses(const JobSpec& spec, absl::string_view kubernetes_namespace,
                      absl::string_view domain);

// What selects the pod of a task, and nothing else.
std::map<std::string, std::string> LabelsOf(const JobSpec& spec, const TaskId& task);

}  // namespace muster::kubernetes
