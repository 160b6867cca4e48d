// Ends jobs.
#pragma once

#include "absl/status/status.h"
#include "job/event_sink.h"
#include "jobs/service.h"

namespace muster::jobs {

// Requests the end of the job, waits for it, and refreshes `job`. `immediately` skips the grace
// period. Returns OK if the job has ended, even by itself; otherwise an error with the reason.
// `job` may then be out of reach.
absl::Status StopJob(Service& service, job::JobRecord& job, bool immediately);

}  // namespace muster::jobs
