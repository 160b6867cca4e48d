// The folder of a run in its bucket, gs://BUCKET/muster_ID/: what its tasks are started from. One
// is there for each run; checkpoints go to that of the first of those that continue each other.
//   job.json    the submission; who makes it has the id
//   config.yml  the job file as the user wrote it
//   tls.json    what the built-in trainer's tasks know each other by
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launch/job_tls.h"
#include "launch/submission.h"
#include "storage/storage.h"

namespace muster::vertex {

// AlreadyExists when another run has the id. What fails leaves nothing there.
absl::Status WriteRun(storage::Storage& storage, const std::string& folder,
                      const Submission& submission, const std::optional<JobTls>& tls);
// NotFound when there is no such run.
absl::StatusOr<Submission> ReadRun(storage::Storage& storage, const std::string& folder);
// nullopt for a job that needs none.
absl::StatusOr<std::optional<JobTls>> ReadTls(storage::Storage& storage, const std::string& folder);
// Of what WriteRun has written; the rest of the folder stays.
absl::Status RemoveRun(storage::Storage& storage, const std::string& folder);

}  // namespace muster::vertex
