// Runs one task of a job in a container of Vertex AI.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "job/task_launch.h"
#include "platform/vertex/run_folder.h"
#include "storage/file_system.h"

namespace muster::vertex {

// Fetches the task's files from the run's folder and its packages, all in `files`, into a new
// folder below `scratch`, and returns its launch parameters. CLUSTER_SPEC in `variables` identifies
// the task. Returns FailedPrecondition if the folder belongs to another submission, which has
// replaced this one, or DataLoss if the folder or a package was altered.
absl::StatusOr<job::TaskLaunch> PrepareTask(storage::FileSystem& files, const TaskRun& run,
                                            const base::Variables& variables,
                                            const std::string& scratch);

}  // namespace muster::vertex
