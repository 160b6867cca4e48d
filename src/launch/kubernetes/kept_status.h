// The status of a TFJob where its CRD prunes the fields that only Muster's CRD has.
#pragma once

#include "k8s/resource.h"

namespace muster::kubernetes {

using k8s::Json;

// The job's status; {} when it has none. `restarts` and `succeeded` come from the annotation
// muster/status where the status lacks them.
Json KeptStatus(const Json& job);

// The merge patch of the job by which its annotation holds those fields of `status` that are not in
// `written`, the API server's answer to the write of `status`, and no others; null when it does.
Json PatchForPruned(const Json& written, const Json& status);

}  // namespace muster::kubernetes
