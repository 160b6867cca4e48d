// Preserves the fields of a TFJob's status that only Muster's CRD defines, in a cluster whose CRD
// prunes them.
#pragma once

#include "k8s/resource.h"

namespace muster::manifest {

using k8s::Json;

// Returns the job's status, or {} if it has none. `restarts` and `succeeded` come from the
// annotation muster/status if the status lacks them.
Json KeptStatus(const Json& job);

// Returns the merge patch after which the job's annotation contains exactly the fields of `status`
// that were pruned. `written` is the API server's response to the write of `status`. Returns null
// if no patch is needed.
Json PatchForPruned(const Json& written, const Json& status);

}  // namespace muster::manifest
