// The `policies` of a native job file.
#pragma once

#include <optional>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster {

struct PoliciesSection {
  Policies policies;
  std::optional<RestartPolicy> restart;  // for every role that does not say
  bool has_success = false;              // else the default depends on the roles
};

PoliciesSection ReadPolicies(const codec::Node& node, codec::Diagnostics& diagnostics);

}  // namespace muster
