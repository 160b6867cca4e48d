// Names, labels, ports and addresses of a job's objects in a cluster. Pure functions.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"
#include "k8s/resource.h"

namespace muster::manifest {

// The custom resource of a job, as defined by Kubeflow.
inline constexpr k8s::ResourceKind kTfJobs{"kubeflow.org", "v1", "tfjobs", "TFJob"};

inline constexpr char kJobLabel[] = "muster/job";
inline constexpr char kRoleLabel[] = "muster/role";
inline constexpr char kIndexLabel[] = "muster/index";

// Returns true if the job was read from a TFJob: a user's manifest, or a native job that `muster
// run` has converted to one (job/format/tfjob_format.h). The roles of such a native job have pod
// templates.
bool IsTfJob(const job::JobSpec& spec);

// Length of the job's name in names with a RuntimeId.
inline constexpr size_t kNamePrefix = 40;

// Returns the name of a task's pod, its Service and its workload: <job>-<role>-<index>, as in
// TFJob, <job>-<role>-<RuntimeId>-<index> if the manifest has one, as in v1alpha1, or
// <role>-<index> in a rendered cluster.
std::string TaskName(const job::JobSpec& spec, const cluster::TaskId& task);

// Returns the port on which a task listens. All tasks of a role share it, because each pod has its
// own address.
int PortOf(const job::RoleSpec& role);
// Returns the name of that port in the pod and its Service.
absl::string_view PortName(const job::JobSpec& spec);

// Returns the address of every task: its Service's name and its port. `domain` is the domain of the
// cluster; "" omits it.
cluster::ClusterSpec Addresses(const job::JobSpec& spec, absl::string_view kubernetes_namespace,
                               absl::string_view domain);

// Returns the labels that select the pod of a task and no other.
std::map<std::string, std::string> LabelsOf(const job::JobSpec& spec, const cluster::TaskId& task);

}  // namespace muster::manifest
