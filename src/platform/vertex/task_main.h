// The entry points of the containers of a job on Vertex AI.
#pragma once

#include "absl/status/status.h"
#include "platform/vertex/run_folder.h"

namespace muster::vertex {

// Prepares the task that the environment identifies and replaces this process with it. Returns only
// on failure.
absl::Status RunTask(storage::FileSystem& files, const TaskRun& run);

// muster vertex-task FOLDER NONCE SHA256: reads the files over the API of Cloud Storage.
absl::Status RunRemoteTask(const TaskRun& run);
// muster-agent vertex-task FOLDER NONCE SHA256: reads the files from mounted buckets.
int MountedTaskMain(int argc, char** argv);

}  // namespace muster::vertex
