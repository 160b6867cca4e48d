// The notebook file that plots the metrics of a job.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::jobs {

// Returns the file (nbformat 4) for `job`: an id, or the name in a job file. Its cells are those of
// ready_notebook.py.
std::string ReadyNotebook(absl::string_view job);

// Writes the file to `path` unless the user has changed it since it was last written, which a
// digest in `record` reveals. A file that the user has deleted is written again.
absl::Status WriteReadyNotebook(absl::string_view job, const std::string& path,
                                const std::string& record);

}  // namespace muster::jobs
