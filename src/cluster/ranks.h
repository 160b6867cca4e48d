// The environment variables for peer discovery in PyTorch (as set by torchrun) and JAX. Pure
// functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster_spec.h"

namespace muster::cluster {

// Returns the tasks that take part in collectives, ordered by rank: chief or master, then worker,
// then the other roles by name. ps and evaluator have no rank.
std::vector<TaskId> RankedTasks(const ClusterSpec& cluster);

// Returns RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT,
// JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID of a task; an empty map for a task
// without a rank. Tasks whose addresses have the same host are on one host (see LOCAL_RANK).
std::map<std::string, std::string> CollectiveVariables(const ClusterSpec& cluster,
                                                       const TaskId& task);

}  // namespace muster::cluster
