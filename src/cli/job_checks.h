// What can be known beforehand to keep a job from running on this machine: the one list that
// `muster doctor` prints and `muster run` goes by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codec/diagnostics.h"
#include "launch/submission.h"

namespace muster::cli {

enum class Grade { kOk, kWarning, kMissing };

struct Finding {
  Grade grade = Grade::kOk;
  std::string subject;  // "script of worker"
  std::string detail;
  bool fatal = false;     // the job is certain to fail
  codec::Mark mark = {};  // of the field in the job file; {} = not known
};

// Directories, programs, scripts, the model's file, data and GPUs; files that are named by a URL
// are not looked for. Files that another task of the job may make first are not fatal.
absl::StatusOr<std::vector<Finding>> CheckJobHere(const std::string& home,
                                                  const Submission& submission);

// OK, or InvalidArgument with "FILE:LINE:COLUMN: …" of every fatal finding.
absl::Status FatalFindings(const std::vector<Finding>& findings, const Submission& submission);

// The script that an interpreter (python, bash, perl, …) is started with; "" when `words` start
// none, or it is not plain to see.
std::string ScriptOf(const std::vector<std::string>& words);

// How many GPUs the machine has whose file system is at `root`; nullopt where that cannot be told.
std::optional<int> CountGpus(const std::string& root);

}  // namespace muster::cli
