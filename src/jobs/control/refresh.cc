#include "jobs/control/refresh.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "platform/capabilities.h"
#include "platform/observer.h"
#include "process/identity.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// For the lock of another observer.
constexpr absl::Duration kObserveLockTimeout = absl::Minutes(1);

// Marks a job without a supervisor as Failed, and kills its leftover processes.
absl::Status MarkLost(Service& service, platform::Supervision& supervision, job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  job::StateChange change{.job = job};
  change.job.state = job::JobState::kFailed;
  change.job.finished = absl::Now();
  change.job.reason = job.state == job::JobState::kPending
                          ? platform::kSubmissionInterrupted
                          : "its supervisor died: it was killed, or the machine restarted";
  MUSTER_ASSIGN_OR_RETURN(std::vector<job::TaskRecord> tasks, history->Tasks(job.id));
  for (job::TaskRecord& task : tasks) {
    if (job::IsFinal(task.state)) continue;
    task.state = job::TaskState::kLost;
    task.pid = 0;
    task.finished = change.job.finished;
    task.reason = "its supervisor died";
    change.tasks.push_back(std::move(task));
  }
  change.events.push_back({.time = *change.job.finished,
                           .kind = "job",
                           .message = absl::StrCat("Failed: ", change.job.reason)});
  const absl::Status applied = history->Apply(change);
  // Apply() returns FailedPrecondition if the job has ended or started since `job` was read. Only
  // the process whose change was applied may kill leftovers: otherwise they may belong to a job
  // that is alive.
  if (applied.ok()) {
    const int leftovers = supervision.KillLeftovers(job);
    if (leftovers > 0) {
      service.Notify(
          absl::StrCat("killed ", base::Plural(leftovers, "process"), " left behind by ", job.id));
    }
  } else if (!absl::IsFailedPrecondition(applied)) {
    return applied;
  }
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  return absl::OkStatus();
}

// Observes the job, and sets `job` to Unreachable if the platform does not respond.
absl::Status ObserveOrMark(Service& service, job::JobRecord& job) {
  const absl::Status observed = Observe(service, job);
  if (observed.ok()) return absl::OkStatus();
  job.state = job::JobState::kUnreachable;
  job.reason = std::string(observed.message());
  return absl::OkStatus();
}

}  // namespace

absl::Status Observe(Service& service, job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(job.platform));
  auto* source = platform::CapabilityOf<platform::StateSource>(*platform);
  if (source == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  // Serializes observers, and reloads the record under the lock, so that each change is applied and
  // its events are recorded once.
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock lock,
      base::FileLock::Acquire(base::JoinPath(job.directory, "observe.lock"), kObserveLockTimeout));
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto change, source->Observe(job, tasks));
  if (!change) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(history->Apply(*change));
  job = change->job;
  return absl::OkStatus();
}

absl::Status Refresh(Service& service, job::JobRecord& job) {
  if (job::IsFinal(job.state)) return absl::OkStatus();
  const auto found = service.platform(job.platform);
  if (!found.ok())
    return absl::OkStatus();  // a later version started it; the record stays as it is
  platform::Platform* platform = *found;
  if (platform::CapabilityOf<platform::StateSource>(*platform) != nullptr) {
    // The submitter owns the record until the platform takes over.
    return IsOwnedHere(job) ? absl::OkStatus() : ObserveOrMark(service, job);
  }
  auto* supervision = platform::CapabilityOf<platform::Supervision>(*platform);
  if (supervision == nullptr || supervision->Check(job) != platform::Liveness::kGone)
    return absl::OkStatus();
  return MarkLost(service, *supervision, job);
}

absl::Status Reload(Service& service, job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  return Refresh(service, job);
}

bool IsOwnedHere(const job::JobRecord& job) {
  return job.supervisor && process::FindProcess(*job.supervisor) == process::Existence::kAlive;
}

bool IsForeignJob(const job::JobRecord& job) {
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  return submission.ok() && job::IsForeign(submission->target);
}

bool IsUnmade(Service& service, const job::JobRecord& job) {
  const auto platform = service.platform(job.platform);
  const auto* ids =
      platform.ok() ? platform::CapabilityOf<platform::ChosenIds>(**platform) : nullptr;
  if (ids == nullptr || job.started.has_value()) return false;
  if (job::IsFinal(job.state) && job.state != job::JobState::kFailed) return false;
  if (IsOwnedHere(job)) return false;
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  return !submission.ok() || ids->IsUnmade(*submission);
}

bool IsGone(Service& service, const job::JobRecord& job) {
  const auto platform = service.platform(job.platform);
  auto* supervision =
      platform.ok() ? platform::CapabilityOf<platform::Supervision>(**platform) : nullptr;
  return supervision != nullptr && supervision->Check(job) == platform::Liveness::kGone;
}

bool IsOutOfReach(Service& service, const job::JobRecord& job) {
  if (job::IsFinal(job.state)) return false;
  const auto platform = service.platform(job.platform);
  if (!platform.ok()) return true;  // written by a later version
  auto* supervision = platform::CapabilityOf<platform::Supervision>(**platform);
  if (supervision == nullptr) return job.state == job::JobState::kUnreachable;
  return supervision->Check(job) == platform::Liveness::kUnknown;
}

std::string WhereIs(Service& service, const job::JobRecord& job) {
  const auto platform = service.platform(job.platform);
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (!platform.ok() || !submission.ok()) return absl::StrCat("on ", job.platform);
  if (!(*platform)->traits().runs_here) return job::DescribeTarget(submission->target);
  return "on the machine or in the container where it was started";
}

std::string DescribeOutOfReach(Service& service, const job::JobRecord& job) {
  return absl::StrCat(
      job.id, ", which may be running ", WhereIs(service, job), " and is out of reach",
      job.reason.empty() ? "" : absl::StrCat(": ", job.reason),
      "; if that place no longer exists, `muster jobs rm ", job.id, "` frees its name");
}

}  // namespace muster::jobs
