// Checks the model dir of a job before the job runs.
#pragma once

#include "base/variables.h"
#include "job/job_spec.h"
#include "platform/finding.h"

namespace muster::jobs {

// Writes a small file to the model dir and removes it, with the credentials of this machine.
// Returns a warning for a storage that only the job's own programs support. Removes nothing else,
// and makes no folder. REQUIRES: the job has a model dir.
platform::Finding CheckModelDir(const job::JobSpec& spec, const base::Variables& variables);

}  // namespace muster::jobs
