// The variables by which PyTorch (torchrun's names) and JAX find their peers. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster_spec.h"

namespace muster {

// The tasks that take part in collectives, rank 0 first: chief or master, then worker, then the
// other roles by name. ps and evaluator have no rank.
std::vector<TaskId> RankedTasks(const ClusterSpec& cluster);

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT,
// JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID. A task without a rank gets none of
// them. Tasks with the same host in their address share a host (LOCAL_RANK counts within it).
std::map<std::string, std::string> CollectiveVariables(const ClusterSpec& cluster,
                                                       const TaskId& task);

}  // namespace muster
