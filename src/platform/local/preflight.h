// Checks of a job before it starts on this machine. `muster doctor` prints the findings; `muster
// run` rejects a job with a fatal one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "platform/finding.h"
#include "supervise/job_dir.h"

namespace muster::local {

// Checks working directories, programs, scripts, the model file, data and GPUs. Skips files named
// by a URL. A missing file that a task of the job may create is not fatal. `dir` is the folder that
// the job will have. `thorough` also reserves ports and releases them.
absl::StatusOr<std::vector<platform::Finding>> CheckJob(const supervise::JobDir& dir,
                                                        const job::Submission& submission,
                                                        bool thorough);

// Returns the script that an interpreter (python, bash, perl, …) is started with, or "" if `words`
// do not start an interpreter or its options are not recognized.
std::string ScriptOf(const std::vector<std::string>& words);

// Returns the number of GPUs of the machine whose file system is mounted at `root`, or nullopt if
// they cannot be counted.
std::optional<int> CountGpus(const std::string& root);

}  // namespace muster::local
