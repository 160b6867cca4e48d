// The fields of a job that the operator ignores.
#pragma once

#include <vector>

#include "job/job_spec.h"
#include "platform/unsupported.h"

namespace muster::kubernetes {

// Returns the limits of a job that can be rendered. Rendering itself reports the fatal ones.
std::vector<platform::Limit> LimitsOf(const job::JobSpec& spec);

}  // namespace muster::kubernetes
