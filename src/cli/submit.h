// Loads, checks and submits jobs.
//
// A submitter holds the lock of LockSubmissions() while it checks that the name and the id are free
// and adds the record of the job, so that concurrent submitters cannot take the same one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "cli/context.h"
#include "job/event_sink.h"
#include "job/submission.h"

namespace muster::cli {

// Reads and validates a job file ("-" = standard input). Returns a submission with a new id, or
// InvalidArgument with all diagnostics. Prints warnings. Replaces {job_id} in model_dir with the
// job's name: for commands that do not start the job.
absl::StatusOr<Submission> LoadSubmission(Context& context, const std::string& path);
// Likewise for one or more files that are merged (see cli/config_files.h). Keeps {job_id} in
// model_dir: the caller calls FillInJobId() once the id is final.
absl::StatusOr<Submission> LoadSubmission(Context& context, const std::vector<std::string>& paths);

// Prints the features of the job that `platform` does not support, as `muster explain` does.
// Returns InvalidArgument if the job cannot run there.
absl::Status CheckSupported(Context& context, const Platform& platform,
                            const Submission& submission);

// Runs the checks of `muster doctor` if the tasks of `platform` run on this machine. Returns
// InvalidArgument if the job would certainly fail. Prints the other problems.
absl::Status CheckRunnable(Context& context, const Platform& platform,
                           const Submission& submission);

// Replaces {job_id} in the model_dir.
void FillInJobId(const std::string& job_id, Submission& submission);

// Returns a new random id for a job of that name: "mnist-x7k2q".
std::string NewJobId(const std::string& name);

// Waits for the exclusive lock on submissions under MUSTER_HOME. The lock is released when the
// descriptor is closed.
absl::StatusOr<UniqueFd> LockSubmissions(Context& context);

// Returns whether the history has no active job of that name. Does not contact the platform.
// REQUIRES: LockSubmissions() held.
absl::StatusOr<bool> IsNameFree(Context& context, const std::string& name);
// Returns whether the id of the submission is free. Deletes the folder and the record of an unmade
// job (see IsUnmade) with this id. REQUIRES: LockSubmissions() held.
absl::StatusOr<bool> TakeId(Context& context, const Submission& submission);

// Adds the job to the history and starts it. If it cannot start, records it as Failed and returns
// the error. Returns Unknown if it may have started; the record then stays pending until the next
// Observe(). Releases `lock`, from LockSubmissions(): after the job is recorded on a slow platform,
// else on return.
absl::StatusOr<JobRecord> SubmitJob(Context& context, const Submission& submission,
                                    const std::string& platform, UniqueFd lock);

// Adds a job that another client submitted to the history.
absl::StatusOr<JobRecord> KeepImported(Context& context, const Submission& submission,
                                       const std::string& platform);

}  // namespace muster::cli
