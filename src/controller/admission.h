// Whether a TFJob may be created or changed: what the API server asks before it keeps one.
#pragma once

#include "controller/conditions.h"

namespace muster::controller {

// The answer to an AdmissionReview (admission.k8s.io/v1). What it holds is not trusted.
Json Review(const Json& review);

}  // namespace muster::controller
