// Keeps the version of the working directory that a job was started with, and finds what has been
// edited since.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "platform/platform.h"
#include "worktree/version.h"

namespace muster::jobs {

// A file of the working directory that differs from the running job's.
struct EditedFile {
  worktree::FileChange change;
  // The texts before and after; nullopt if it did not or does not exist, or is not text.
  std::optional<std::string> before, after;
};

// The difference between the working directory and the version of a running job.
struct VersionChange {
  worktree::Version version;      // the files as they are now
  job::WorkVersion ids;           // of `version`
  std::vector<EditedFile> files;  // empty = nothing was edited, or it was another directory
};

// Saves the version of the working directory for a new job and sets submission.version. If that is
// not possible, leaves it empty and notifies: the job runs, but edits are not noticed.
void TakeVersion(Service& service, platform::WorkDirUse use, const job::JobRecord& job,
                 job::Submission& submission);

// Returns the version of the working directory of `next`, and what has been edited there since
// `running` was started or last changed. Job files do not count, nor do files that were added
// without a change to another one. A directory that cannot be read
// counts as unchanged, with a notice.
VersionChange CompareVersion(Service& service, platform::WorkDirUse use, const job::JobRecord& job,
                             const job::Submission& running, const job::Submission& next);

// Saves the version of a change before it is applied. Returns Aborted if a file has changed since
// CompareVersion().
absl::Status SaveVersion(Service& service, const job::JobRecord& job, const job::Submission& next,
                         const VersionChange& change);
// Removes all saved versions of the job except `version`. Best effort.
void KeepOnlyVersion(const job::JobRecord& job, const job::WorkVersion& version);

// Returns the folder of the contents that versions of all jobs share.
std::string VersionContents(const Service& service);

}  // namespace muster::jobs
