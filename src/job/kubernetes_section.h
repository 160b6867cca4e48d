// The `kubernetes` sections of a job file: what no other platform needs.
#pragma once

#include <string>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "nlohmann/json.hpp"

namespace muster {

// {"pod": …, "container": …}: what is merged into the spec of each pod and of its container, in
// Kubernetes' own words, which only its server checks. `what` is for messages.
nlohmann::json ReadPodFragments(const codec::Node& node, std::string what,
                                codec::Diagnostics& diagnostics);

// The job's own: also the namespace, "" when it names none.
nlohmann::json ReadKubernetes(const codec::Node& node, std::string& kubernetes_namespace,
                              codec::Diagnostics& diagnostics);

}  // namespace muster
