// What runs in a container of Vertex AI: one task of a job.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "job/task_launch.h"
#include "launch/vertex/run_folder.h"
#include "storage/storage.h"

namespace muster::vertex {

// Fetches what the task needs from the run's folder and its packages into a new folder below
// `scratch`, and says how it is to be started. Which task it is, CLUSTER_SPEC of `variables` tells.
// FailedPrecondition when the folder is that of another submission: nobody waits for this one.
// DataLoss when something in the folder or a package is not what was submitted.
absl::StatusOr<TaskLaunch> PrepareTask(storage::Storage& storage, const TaskRun& run,
                                       const Variables& variables, const std::string& scratch);

}  // namespace muster::vertex
