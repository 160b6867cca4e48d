// Muster's own job file (docs/job-file.md).
#pragma once

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"
#include "job/parse.h"

namespace muster {

// The job is worth using only when `diagnostics` stayed empty.
JobSpec ReadNativeJob(const codec::Node& document, const ParseJobOptions& options,
                      codec::Diagnostics& diagnostics);

}  // namespace muster
