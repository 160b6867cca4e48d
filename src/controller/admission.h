// Whether a TFJob may be created or changed: what the API server asks before it keeps one.
#pragma once

#include "controller/tfjob.h"

namespace muster::controller {

// The answer to an AdmissionReview (admission.k8s.io/v1). What it holds is not trusted; never
// throws. A job is refused when it has mistakes or when no pod can be made from one of its
// templates.
Json Review(const Json& review, const TfJobOptions& options);

}  // namespace muster::controller
