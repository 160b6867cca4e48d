// The graph of a job's model, with the devices of its nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "job/event_sink.h"
#include "summary/graph_decoder.h"

namespace muster::jobs {

struct GraphDevice {
  std::string name;                     // "/job:ps/task:0"
  std::optional<cluster::TaskId> task;  // nullopt if the name denotes none
  int64_t bytes = 0;                    // of the variables that are placed there
};

struct ModelGraph {
  std::vector<summary::DecodedNode> nodes;
  std::vector<GraphDevice> devices;  // ordered by name
};

// Returns the newest graph in the event files of the job's model dir. Empty if there is none, or if
// the model dir is not on this machine.
absl::StatusOr<ModelGraph> ReadGraph(const job::JobRecord& job);

}  // namespace muster::jobs
