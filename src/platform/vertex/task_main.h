// muster vertex-task: the entry point of every container of a job on Vertex AI.
#pragma once

#include "absl/status/status.h"
#include "platform/vertex/run_folder.h"

namespace muster::vertex {

// Prepares the task that the environment identifies and replaces this process with it. Returns only
// on failure.
absl::Status RunTask(const TaskRun& run);

}  // namespace muster::vertex
