// The folder of a run in its bucket, gs://BUCKET/muster_ID/: what its tasks are started from. One
// is there for each run; checkpoints go to that of the first of those that continue each other.
//   job.json    the submission; creating it (create-if-absent) claims the id
//   config.yml  the job file as the user wrote it
//   tls.json    the certificates of the built-in trainer's tasks
//
// Others may be able to write to the bucket, so a task verifies what it reads there. The CustomJob,
// which is not kept in the bucket, has the hash of job.json; job.json has those of tls.json and of
// every package, which is named by it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launch/job_tls.h"
#include "launch/submission.h"
#include "storage/storage.h"

namespace muster::vertex {

// Whether the job's tasks exchange tensors, which they do over TLS alone.
bool NeedsTls(const JobSpec& spec);

// Returns the SHA-256 of job.json. AlreadyExists when another run has the id. What fails leaves
// nothing there.
absl::StatusOr<std::string> WriteRun(storage::Storage& storage, const std::string& folder,
                                     Submission submission, const std::optional<JobTls>& tls);
// NotFound when there is no such run.
absl::StatusOr<Submission> ReadRun(storage::Storage& storage, const std::string& folder);

// The run that a task belongs to, as its CustomJob has it.
struct TaskRun {
  std::string folder;
  std::string nonce;   // of its submission
  std::string sha256;  // of its job.json
};

// FailedPrecondition when the folder is that of another submission, DataLoss when job.json is not
// what was submitted.
absl::StatusOr<Submission> ReadOwnRun(storage::Storage& storage, const TaskRun& run);
// Those of a submission of ReadOwnRun; nullopt for a job that needs none. FailedPrecondition when
// they are missing, DataLoss when they are not those that were written with it.
absl::StatusOr<std::optional<JobTls>> ReadTls(storage::Storage& storage, const std::string& folder,
                                              const Submission& submission);
// Of what WriteRun has written; the rest of the folder stays.
absl::Status RemoveRun(storage::Storage& storage, const std::string& folder);

}  // namespace muster::vertex
