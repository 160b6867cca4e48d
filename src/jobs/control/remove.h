// Removes jobs from this machine: their records, logs and folders. Model dirs are never touched.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "jobs/service.h"

namespace muster::jobs {

// Removes the folder and the record of a job, whatever its state.
absl::Status RemoveJob(Service& service, const std::string& id);

// Returns the refreshed job if it may be removed: a finished job, or one that is out of reach.
// `force` also permits a reachable one, unless a process on this machine supervises it. Returns
// FailedPrecondition, with the remedy, for other jobs.
absl::StatusOr<job::JobRecord> FindRemovable(Service& service, const std::string& reference,
                                             bool force);

// Returns the finished jobs beyond the newest `keep`, newest first.
absl::StatusOr<std::vector<job::JobRecord>> FinishedBeyond(Service& service, int keep);

}  // namespace muster::jobs
