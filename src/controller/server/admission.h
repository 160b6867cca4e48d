// The validating webhook: checks TFJobs before the API server stores them.
#pragma once

#include "controller/rules/tfjob.h"

namespace muster::controller {

// Returns the response to an AdmissionReview (admission.k8s.io/v1). Rejects a job that is invalid
// or from whose templates a pod cannot be built. `review` is untrusted input; never throws.
Json Review(const Json& review, const TfJobOptions& options);

}  // namespace muster::controller
