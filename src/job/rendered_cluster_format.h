// The `config.yaml` of a rendered cluster: resources of type tensorflow-cluster and jupyter-service
// (docs/job-file.md).
#pragma once

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster {

bool IsRenderedCluster(const codec::Node& document);

// The job is worth using only when `diagnostics` stayed empty.
JobSpec ReadRenderedCluster(const codec::Node& document, codec::Diagnostics& diagnostics);

}  // namespace muster
