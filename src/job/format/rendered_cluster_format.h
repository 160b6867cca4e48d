// Reads the `config.yaml` of a rendered cluster: resources of type tensorflow-cluster and
// jupyter-service (docs/job-file.md).
#pragma once

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster::job {

bool IsRenderedCluster(const codec::Node& document);

// Returns the job. It is valid only if `diagnostics` has no errors.
JobSpec ReadRenderedCluster(const codec::Node& document, codec::Diagnostics& diagnostics);

}  // namespace muster::job
