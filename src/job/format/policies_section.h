// Reads `policies` in a native job file.
#pragma once

#include <optional>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster::job {

struct PoliciesSection {
  Policies policies;
  std::optional<RestartPolicy> restart;  // for roles without their own
  bool has_success = false;              // if false, the default depends on the roles
};

PoliciesSection ReadPolicies(const codec::Node& node, codec::Diagnostics& diagnostics);

}  // namespace muster::job
