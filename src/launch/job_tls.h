// By what the tasks of a job know each other.
#pragma once

#include <string>

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

}  // namespace muster
