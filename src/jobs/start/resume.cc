#include "jobs/start/resume.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "jobs/control/refresh.h"
#include "jobs/find/lookup.h"
#include "jobs/results/results.h"
#include "jobs/start/images.h"
#include "jobs/start/submit.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Returns FailedPrecondition unless the job and every later run of it have ended.
absl::Status CheckEnded(Service& service, const job::JobRecord& previous) {
  if (IsOutOfReach(service, previous)) {
    return absl::FailedPreconditionError(DescribeOutOfReach(service, previous));
  }
  if (!job::IsFinal(previous.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat(previous.id, " is ", job::ToString(previous.state),
                     "; stop it before you resume it: muster stop ", previous.id));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto later, RunningJob(service, previous.name));
  if (!later.has_value()) return absl::OkStatus();
  if (IsOutOfReach(service, *later)) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a later run, ", DescribeOutOfReach(service, *later)));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "a later run, ", later->id, ", is ", job::ToString(later->state), "; stop it first"));
}

}  // namespace

absl::StatusOr<job::Submission> PlanResume(Service& service, const job::JobRecord& previous,
                                           std::optional<int64_t> step) {
  MUSTER_RETURN_IF_ERROR(CheckEnded(service, previous));
  // The stored submission has absolute paths, so the current directory does not matter.
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(previous.directory).LoadSubmission());
  if (step && !submission.spec.train.is_null()) {
    MUSTER_RETURN_IF_ERROR(CheckCheckpoint(previous.model_dir, *step));
  }
  MUSTER_RETURN_IF_ERROR(ChooseJobId(service, "", "train", submission));
  submission.created = absl::Now();
  submission.resumed_from = previous.id;
  submission.resume_step = step;
  if (auto trainer = service.FindTrainer(); trainer.ok()) submission.trainer = *std::move(trainer);
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(previous.platform));
  MUSTER_RETURN_IF_ERROR(CheckSupported(service, submission));
  MUSTER_RETURN_IF_ERROR(platform->Prepare(submission));
  MUSTER_RETURN_IF_ERROR(CheckRunnable(service, submission));
  return submission;
}

absl::StatusOr<job::JobRecord> StartResumed(Service& service, const job::Submission& submission) {
  MUSTER_RETURN_IF_ERROR(PushImages(service, ImagesOf(service, submission)));
  // Checks the name again under the lock: another run may have started since PlanResume().
  MUSTER_ASSIGN_OR_RETURN(base::FileLock lock, LockSubmissions(service));
  MUSTER_ASSIGN_OR_RETURN(const bool free, IsNameFree(service, submission.spec.name));
  if (!free) {
    return absl::FailedPreconditionError(
        absl::StrCat("a later run of ", submission.spec.name, " has just started"));
  }
  return SubmitJob(service, submission, std::move(lock));
}

}  // namespace muster::jobs
