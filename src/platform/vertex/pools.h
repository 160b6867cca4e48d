// Maps a job's tasks to the four worker pools of a CustomJob: leading task, workers, parameter
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

// Tasks of each pool in the order of its replicas. The first pool has exactly one replica; if no
// role is named chief or master, it is the first worker.
using Pools = std::array<std::vector<cluster::TaskId>, kPools>;

// Returns InvalidArgument if the roles of the job do not fit the pools.
absl::StatusOr<Pools> PoolsOf(const job::JobSpec& spec);

// Returns the task with Vertex AI's name for it, such as "workerpool1-0", or nullopt.
std::optional<cluster::TaskId> FindTask(const Pools& pools, absl::string_view name);

// Returns Vertex AI's name of a task, or "" if the task is not in `pools`.
std::string ReplicaName(const Pools& pools, const cluster::TaskId& task);

// Content of the variable CLUSTER_SPEC in a container.
struct Membership {
  cluster::ClusterSpec cluster;  // in terms of the job's tasks
  cluster::TaskId self;
};

// Parses CLUSTER_SPEC. An empty text is valid for a job of one task. Returns InvalidArgument if the
// text does not match the job.
absl::StatusOr<Membership> ReadClusterSpec(const job::JobSpec& spec, absl::string_view text);

}  // namespace muster::vertex
