// The certificates with which the tasks of a job authenticate each other.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::job {

// PEM texts, the same for all tasks of a job.
struct JobTls {
  std::string authority;
  std::string certificate;  // for kTaskTlsName
  std::string key;
};

// Creates an authority and one certificate issued by it. The authority's private key is discarded,
// so no further certificate can be issued.
absl::StatusOr<JobTls> MakeJobTls(const std::string& job);

// Creates ca.crt, tls.crt and tls.key in `folder`, for MUSTER_TLS_DIR, readable by their owner
// only. Keeps existing files, so that every task of the job gets the same. Returns
// FailedPrecondition if existing files do not match each other or have expired.
absl::Status EnsureJobTls(const std::string& job, const std::string& folder);

}  // namespace muster::job
