// By what the tasks of a job know each other.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// PEM, the same for all of its tasks: what they trust, and who they are.
struct JobTls {
  std::string authority;
  std::string certificate;  // for kTaskTlsName
  std::string key;
};

// A new authority, which issues this one certificate and is gone.
absl::StatusOr<JobTls> MakeJobTls(const std::string& job);

// Makes the files ca.crt, tls.crt and tls.key in a folder, for MUSTER_TLS_DIR, readable by their
// owner alone. Those that are there already stay, so that every task of the job gets the same;
// FailedPrecondition when they do not fit together or have expired.
absl::Status EnsureJobTls(const std::string& job, const std::string& folder);

}  // namespace muster
