// Claims names and ids, and hands jobs to their platform.
//
// A submitter holds the lock of LockSubmissions() while it checks that the name and the id are free
// and adds the record of the job, so that concurrent submitters cannot take the same one.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_lock.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/service.h"

namespace muster::jobs {

// Returns a new random id for a job of that name: "mnist-x7k2q".
std::string NewJobId(const std::string& name);
// Sets the id of a submission. On a platform with ChosenIds, that is `wanted`, or
// PREFIX_%Y%m%d_%H%M%S if that is "", and may be the id of an unmade job (see IsUnmade). Does not
// reserve it: see TakeId(). Returns AlreadyExists if `wanted` is taken.
absl::Status ChooseJobId(Service& service, const std::string& wanted, const std::string& prefix,
                         job::Submission& submission);

// Notifies of the features of the job that its platform does not support. Returns InvalidArgument
// if the job cannot run there.
absl::Status CheckSupported(Service& service, const job::Submission& submission);
// Runs the checks of the job's platform, if it has any. Returns InvalidArgument if the job would
// certainly fail. Notifies of the other problems.
absl::Status CheckRunnable(Service& service, const job::Submission& submission);

// Waits for the exclusive lock on submissions under MUSTER_HOME. Returns Cancelled if the user
// interrupts the wait.
absl::StatusOr<base::FileLock> LockSubmissions(Service& service);
// Returns whether the history has no active job of that name. Does not contact the platform.
// REQUIRES: LockSubmissions() held.
absl::StatusOr<bool> IsNameFree(Service& service, const std::string& name);
// Returns whether the id of the submission is free. Deletes the folder and the record of an unmade
// job with this id. REQUIRES: LockSubmissions() held.
absl::StatusOr<bool> TakeId(Service& service, const job::Submission& submission);

// Adds the job to the history and starts it. If it cannot start, records it as Failed and returns
// the error. Returns Unknown if it may have started; the record then stays pending until the next
// Observe(). Releases `lock`, from LockSubmissions(): after the job is recorded on a platform that
// is slow to submit, else on return. REQUIRES: the submission is prepared by its platform.
absl::StatusOr<job::JobRecord> SubmitJob(Service& service, const job::Submission& submission,
                                         std::optional<base::FileLock> lock);

// Adds to the history a job that another client submitted.
absl::StatusOr<job::JobRecord> AddImported(Service& service, const job::Submission& submission);

}  // namespace muster::jobs
