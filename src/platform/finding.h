// A result of a check before a job starts, such as a program that is missing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codec/diagnostics.h"
#include "job/submission.h"

namespace muster::platform {

enum class Grade { kOk, kWarning, kMissing };

struct Finding {
  Grade grade = Grade::kOk;
  std::string subject;  // "script of worker"
  std::string detail;
  bool fatal = false;     // the job would certainly fail
  codec::Mark mark = {};  // of the field in the job file; {} = unknown
};

// Returns InvalidArgument, with "FILE:LINE:COLUMN: …" for each fatal finding, or OK if there is
// none.
absl::Status FatalFindings(const std::vector<Finding>& findings, const job::Submission& submission);

}  // namespace muster::platform
