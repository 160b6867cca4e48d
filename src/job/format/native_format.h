// Reads Muster's own job file format (docs/job-file.md).
#pragma once

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/format/parse.h"
#include "job/job_spec.h"

namespace muster::job {

// Returns the job. It is valid only if `diagnostics` has no errors.
JobSpec ReadNativeJob(const codec::Node& document, const ParseJobOptions& options,
                      codec::Diagnostics& diagnostics);

}  // namespace muster::job
