// From a job file to a running job: shared by `run` and `resume`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "cli/context.h"
#include "job/event_sink.h"
#include "launch/submission.h"

namespace muster::cli {

// Reads and validates a job file ("-" = standard input) and completes it to a submission with a new
// id. InvalidArgument holds every mistake. For commands that only look at it: {job_id} of its
// model_dir is the job's name.
absl::StatusOr<Submission> LoadSubmission(Context& context, const std::string& path);
// The same of several files that are one job (see cli/config_files.h), to be run: once its id is
// decided, FillInJobId.
absl::StatusOr<Submission> LoadSubmission(Context& context, const std::vector<std::string>& paths);

// Tells the user what `platform` does not do of what the job asks for, as `muster explain` would.
// InvalidArgument for a job that cannot run there.
absl::Status CheckSupported(Context& context, const Platform& platform,
                            const Submission& submission);

// What `doctor` would find to be missing, for a platform whose tasks run on this machine:
// InvalidArgument for a job that is certain to fail; the user is told of the rest.
absl::Status CheckRunnable(Context& context, const Platform& platform,
                           const Submission& submission);

// Replaces {job_id} in the model_dir.
void FillInJobId(const std::string& job_id, Submission& submission);

// A new id for a job of that name: "mnist-x7k2q".
std::string NewJobId(const std::string& name);

// Held while it is decided whether a name is free, so that two `run`s at once do not both find it
// so.
absl::StatusOr<UniqueFd> LockSubmissions(Context& context);

// With the lock: whether no job of that name is active, as far as the history knows without asking
// its platform.
absl::StatusOr<bool> IsNameFree(Context& context, const std::string& name);
// With the lock: whether the submission may have its id. The record of a job that never came to be
// makes room for it.
absl::StatusOr<bool> TakeId(Context& context, const Submission& submission);

// Records the job and starts it. When it cannot start, the record says Failed and why; where that
// is not known, it is left to be looked for. `lock`, of LockSubmissions(), is given back at the
// end, or when others need not wait for it.
absl::StatusOr<JobRecord> SubmitJob(Context& context, const Submission& submission,
                                    const std::string& platform, UniqueFd lock);

// Records a job that others have started.
absl::StatusOr<JobRecord> KeepImported(Context& context, const Submission& submission,
                                       const std::string& platform);

}  // namespace muster::cli
