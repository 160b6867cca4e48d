// Preflight checks of a job that runs on this machine. `muster doctor` prints the findings; `muster
// run` rejects a job with a fatal one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codec/diagnostics.h"
#include "job/submission.h"

namespace muster::cli {

enum class Grade { kOk, kWarning, kMissing };

struct Finding {
  Grade grade = Grade::kOk;
  std::string subject;  // "script of worker"
  std::string detail;
  bool fatal = false;     // the job would certainly fail
  codec::Mark mark = {};  // of the field in the job file; {} = unknown
};

// Checks working directories, programs, scripts, the model file, data and GPUs. Skips files named
// by a URL. A missing file that a task of the job may create is not fatal. `home` is MUSTER_HOME.
absl::StatusOr<std::vector<Finding>> CheckJobHere(const std::string& home,
                                                  const Submission& submission);

// Returns InvalidArgument, with "FILE:LINE:COLUMN: …" for each fatal finding, or OK if there is
// none.
absl::Status FatalFindings(const std::vector<Finding>& findings, const Submission& submission);

// Returns the script that an interpreter (python, bash, perl, …) is started with, or "" if `words`
// do not start an interpreter or its options are not recognized.
std::string ScriptOf(const std::vector<std::string>& words);

// Returns the number of GPUs of the machine whose file system is mounted at `root`, or nullopt if
// they cannot be counted.
std::optional<int> CountGpus(const std::string& root);

}  // namespace muster::cli
