#include "jobs/control/wait.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "jobs/control/refresh.h"
#include "platform/capabilities.h"

namespace muster::jobs {
namespace {

constexpr absl::Duration kLivenessInterval = absl::Seconds(1);
// How long a job is watched before its record is read again: a watch may miss its end.
constexpr absl::Duration kWatchTime = absl::Seconds(10);
// Pauses between reads of a record while there is nothing to watch.
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// Returns whether the job's platform may answer later.
bool MayAnswer(Service& service, const job::JobRecord& job) {
  const auto platform = service.platform(job.platform);
  return platform.ok() && platform::CapabilityOf<platform::StateSource>(**platform) != nullptr;
}

}  // namespace

void WaitForWatch(Service& service, const job::JobRecord& job, absl::Time deadline) {
  const auto platform = service.platform(job.platform);
  if (!platform.ok()) return;
  const auto watch = (*platform)->Watch(job);
  while (watch.ok() && absl::Now() < deadline) {
    pollfd waiting{.fd = (*watch)->fd(), .events = POLLIN};
    const absl::Duration timeout = std::min(kLivenessInterval, deadline - absl::Now());
    ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(absl::ToInt64Milliseconds(timeout), 0)));
    if (waiting.revents != 0 && !(*watch)->Drain()) return;
    if (IsGone(service, job)) return;
  }
}

absl::Status WaitForJob(Service& service, job::JobRecord& job, absl::Time deadline) {
  bool answers = true;
  absl::Duration pause = kFirstPause;
  for (;;) {
    MUSTER_RETURN_IF_ERROR(Reload(service, job));
    if (job::IsFinal(job.state)) return absl::OkStatus();
    const absl::Time begin = absl::Now();
    if (begin >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(job.id, " is still ", job::ToString(job.state)));
    }
    const bool lost = IsOutOfReach(service, job);
    if (lost && !MayAnswer(service, job)) {
      return absl::FailedPreconditionError(DescribeOutOfReach(service, job));
    }
    if (lost && answers) {
      service.Notify(absl::StrCat("lost contact with ", job.id, ": ", job.reason, "; waiting"));
    }
    answers = !lost;
    if (!lost) WaitForWatch(service, job, std::min(deadline, begin + kWatchTime));
    // A watch that closes at once comes just before the end, or from a job that cannot be watched.
    pause = absl::Now() - begin > kLivenessInterval ? kFirstPause : pause * 2;
    absl::SleepFor(std::min({pause, kLongestPause, deadline - absl::Now()}));
  }
}

}  // namespace muster::jobs
