// What the operator does not do of what a job asks for.
#pragma once

#include <vector>

#include "job/job_spec.h"
#include "launch/unsupported.h"

namespace muster::kubernetes {

// All but what keeps the job from being rendered.
std::vector<Limit> LimitsOf(const JobSpec& spec);

}  // namespace muster::kubernetes
