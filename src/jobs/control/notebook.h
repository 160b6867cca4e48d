// Finds the notebooks of jobs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "platform/capabilities.h"

namespace muster::jobs {

// Returns the name of the first platform whose jobs have notebooks, or "" if there is none.
std::string NotebookPlatform(Service& service);

// Returns InvalidArgument if jobs on the platform have no notebooks.
absl::Status CheckHasNotebooks(Service& service, const std::string& platform);

// Returns how to reach the notebook of a job. A submission without an id is a job file whose
// objects were applied by hand. Returns InvalidArgument if the platform has no notebooks, or
// NotFound if the notebook does not exist.
absl::StatusOr<platform::NotebookAccess> FindNotebook(Service& service,
                                                      const job::Submission& submission);

}  // namespace muster::jobs
