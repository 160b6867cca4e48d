// The folder of a run in its bucket, gs://BUCKET/muster_ID/, from which its tasks start. Every run
// has its own; the checkpoints of runs that resume each other are in the folder of the first one.
//   job.json    the submission; creating it (create-if-absent) claims the id
//   config.yml  the job file as the user wrote it
//   tls.json    the certificates of the built-in trainer's tasks
//   newest      in the folder of a first run: the URL of the newest run that resumes it
//
// Others may be able to write to the bucket, so a task verifies everything that it reads there. The
// CustomJob, which is not stored in the bucket, contains the hash of job.json; job.json contains
// the hashes of tls.json and of every package.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "job/job_tls.h"
#include "job/submission.h"
#include "storage/storage.h"

namespace muster::vertex {

// Returns true if the job's tasks exchange tensors, which requires TLS.
bool NeedsTls(const job::JobSpec& spec);

// Writes the folder and returns the SHA-256 of job.json, or AlreadyExists if another run has the
// id. On failure the files written are removed (best effort).
absl::StatusOr<std::string> WriteRun(storage::Storage& storage, const std::string& folder,
                                     job::Submission submission,
                                     const std::optional<job::JobTls>& tls);
// Returns InvalidArgument unless `prefix` can begin the name of a run's folder.
absl::Status CheckFolderPrefix(absl::string_view prefix);

// Returns the submission without verifying it, or NotFound if there is no such run.
absl::StatusOr<job::Submission> ReadRun(storage::Storage& storage, const std::string& folder);

// The run that a task belongs to, from the arguments of its container.
struct TaskRun {
  std::string folder;
  std::string nonce;   // of its submission
  std::string sha256;  // of its job.json
};

// Returns the verified submission. Returns FailedPrecondition if the folder belongs to another
// submission, or DataLoss if job.json was altered.
absl::StatusOr<job::Submission> ReadOwnRun(storage::FileSystem& files, const TaskRun& run);
// Returns the certificates for a submission from ReadOwnRun(), or nullopt if the job needs none.
// Returns FailedPrecondition if they are missing, or DataLoss if they were altered.
absl::StatusOr<std::optional<job::JobTls>> ReadTls(storage::FileSystem& files,
                                                   const std::string& folder,
                                                   const job::Submission& submission);
// Removes the files that WriteRun() writes. Other files in the folder are kept.
absl::Status RemoveRun(storage::Storage& storage, const std::string& folder);

// The folder of a run that is resumed.
struct EarlierRun {
  std::string folder;
  std::optional<job::Submission> submission;  // nullopt = another tool wrote the folder
};
// Returns the run with this id in the target's bucket: in a folder with the target's prefix, with
// the default one, or with "lumi_". A folder that has a config.yml but no job.json is of another
// tool. Returns NotFound if there is none.
absl::StatusOr<EarlierRun> FindRun(storage::Storage& storage, const job::VertexTarget& target,
                                   const std::string& id);

// Records that the run in `folder` is the newest that writes to `first`, the folder of the first
// run.
absl::Status WriteNewest(storage::Storage& storage, const std::string& first,
                         const std::string& folder);
// Returns the submission of the newest run that writes to `first`, without verifying it. Returns
// NotFound if `first` is not the folder of a run.
absl::StatusOr<job::Submission> ReadNewest(storage::Storage& storage, const std::string& first);

}  // namespace muster::vertex
