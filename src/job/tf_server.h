// The server of a task that runs TensorFlow without a program of the user's: tf_server.py, which is
// compiled in.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::job {

// Where a pod mounts the program, as the first TfJob operator did.
inline constexpr char kTfServerFolder[] = "/ps-server";
// The usual name of the file that contains the program.
inline constexpr char kTfServerFile[] = "tf_server.py";

// Returns the text of the program. It reads the task from TF_CONFIG.
absl::string_view TfServerProgram();

}  // namespace muster::job
