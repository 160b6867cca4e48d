// The folder of a run in its bucket, gs://BUCKET/muster_ID/, from which its tasks start. Every run
// has its own; the checkpoints of runs that resume each other are in the folder of the first one.
//   job.json    the submission; creating it (create-if-absent) claims the id
//   config.yml  the job file as the user wrote it
//   tls.json    the certificates of the built-in trainer's tasks
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
bool NeedsTls(const JobSpec& spec);

// Writes the folder and returns the SHA-256 of job.json, or AlreadyExists if another run has the
// id. On failure the files written are removed (best effort).
absl::StatusOr<std::string> WriteRun(storage::Storage& storage, const std::string& folder,
                                     Submission submission, const std::optional<JobTls>& tls);
// Returns the submission without verifying it, or NotFound if there is no such run.
absl::StatusOr<Submission> ReadRun(storage::Storage& storage, const std::string& folder);

// The run that a task belongs to, from the arguments of its container.
struct TaskRun {
  std::string folder;
  std::string nonce;   // of its submission
  std::string sha256;  // of its job.json
};

// Returns the verified submission. Returns FailedPrecondition if the folder belongs to another
// submission, or DataLoss if job.json was altered.
absl::StatusOr<Submission> ReadOwnRun(storage::Storage& storage, const TaskRun& run);
// Returns the certificates for a submission from ReadOwnRun(), or nullopt if the job needs none.
// Returns FailedPrecondition if they are missing, or DataLoss if they were altered.
absl::StatusOr<std::optional<JobTls>> ReadTls(storage::Storage& storage, const std::string& folder,
                                              const Submission& submission);
// Removes the files that WriteRun() writes. Other files in the folder are kept.
absl::Status RemoveRun(storage::Storage& storage, const std::string& folder);

}  // namespace muster::vertex
