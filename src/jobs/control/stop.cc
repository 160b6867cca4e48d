#include "jobs/control/stop.h"

#include "base/status_macros.h"
#include "jobs/control/refresh.h"
#include "jobs/control/wait.h"

namespace muster::jobs {
absl::Status StopJob(Service& service, job::JobRecord& job, bool immediately) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(job.platform));
  const absl::Status asked = platform->Stop(job, immediately);
  if (asked.ok()) WaitForWatch(service, job, absl::InfiniteFuture());
  // A failed Stop() may mean that the job has just ended, so the record is checked before the error
  // is reported.
  MUSTER_RETURN_IF_ERROR(Reload(service, job));
  if (job::IsFinal(job.state)) return absl::OkStatus();
  return asked.ok() ? absl::UnavailableError("did not end") : asked;
}

}  // namespace muster::jobs
