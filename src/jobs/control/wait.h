// Waits for jobs to end.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "job/event_sink.h"
#include "jobs/service.h"

namespace muster::jobs {

// Waits until the job has ended and reloads its record. A platform that does not answer is asked
// again until it does, with a notice. Returns DeadlineExceeded at `deadline`, or FailedPrecondition
// if the end of the job cannot be seen from this machine.
absl::Status WaitForJob(Service& service, job::JobRecord& job, absl::Time deadline);

// Waits until the watch on the job closes, the platform reports it gone, or `deadline`. Does not
// update the record.
void WaitForWatch(Service& service, const job::JobRecord& job, absl::Time deadline);

}  // namespace muster::jobs
