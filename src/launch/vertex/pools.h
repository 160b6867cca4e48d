// A job's tasks as the four worker pools of a CustomJob: the one that leads, workers, parameter
// servers, evaluators. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"

namespace muster::vertex {

inline constexpr int kPools = 4;

// The tasks of each pool, in the order of its replicas. Where no role is called chief or master,
// the first worker leads: the first pool has exactly one replica.
using Pools = std::array<std::vector<TaskId>, kPools>;

// InvalidArgument for a job whose roles do not fit into them.
absl::StatusOr<Pools> PoolsOf(const JobSpec& spec);

// The task that Vertex AI calls "workerpool1-0" in logs and messages; nullopt when there is none.
std::optional<TaskId> FindTask(const Pools& pools, absl::string_view name);

// What Vertex AI calls a task; "" for one that is not there.
std::string ReplicaName(const Pools& pools, const TaskId& task);

// What the variable CLUSTER_SPEC tells a container.
struct Membership {
  ClusterSpec cluster;  // of the job's own tasks
  TaskId self;
};

// An empty text is that of a job of one task. InvalidArgument for one that does not fit the job.
absl::StatusOr<Membership> ReadClusterSpec(const JobSpec& spec, absl::string_view text);

}  // namespace muster::vertex
