#include "jobs/control/remove.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "jobs/control/refresh.h"
#include "jobs/results/notes.h"
#include "jobs/start/version.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

absl::Status CheckRemovable(Service& service, const job::JobRecord& job, bool force) {
  if (job::IsFinal(job.state) || IsOutOfReach(service, job)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(job.platform));
  // A live supervisor or submitter on this machine would write the record again.
  if (IsOwnedHere(job) || platform::CapabilityOf<platform::Supervision>(*platform) != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        job.id, " is supervised on this machine; stop it with `muster stop --now ", job.id, "`"));
  }
  if (force) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      job.id, " is ", job::ToString(job.state), " and reachable; stop it with `muster stop ",
      job.id, "`, or pass --force to remove its record and leave it running"));
}

}  // namespace

absl::Status RemoveJob(Service& service, const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  // Deletes the record last, so that a retry finds a folder that could not be removed. Derives the
  // path from the id: in a copied MUSTER_HOME, records still point to the original folders.
  const std::string directory = supervise::JobDir::Of(service.home(), id).path();
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(directory, ": ", error.message()));
  worktree::RemoveUnused(VersionContents(service));
  MUSTER_RETURN_IF_ERROR(history->DeleteJob(id));
  WriteNotes(service.home(), id, {}).IgnoreError();  // an entry of no job is never shown
  return absl::OkStatus();
}

absl::StatusOr<job::JobRecord> FindRemovable(Service& service, const std::string& reference,
                                             bool force) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, history->Resolve(reference));
  // A later version may have written a platform that this one lacks.
  if (service.platform(job.platform).ok()) MUSTER_RETURN_IF_ERROR(Refresh(service, job));
  MUSTER_RETURN_IF_ERROR(CheckRemovable(service, job, force));
  return job;
}

absl::StatusOr<std::vector<job::JobRecord>> FinishedBeyond(Service& service, int keep) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  return history->FinishedBeyond(keep);
}

}  // namespace muster::jobs
