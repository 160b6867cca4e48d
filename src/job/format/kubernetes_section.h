// Reads the `kubernetes` sections of a job file, which other platforms ignore.
#pragma once

#include <string>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// Returns {"pod": …, "container": …}, the fields that are merged into the spec of each pod and of
// its container. Field types are checked here; the rest is checked by the API server. `what` names
// the section in messages.
nlohmann::json ReadPodFragments(const codec::Node& node, std::string what,
                                codec::Diagnostics& diagnostics);

// As above, for the section of the whole job, which may also set the namespace. Sets
// `kubernetes_namespace` only if the section has one.
nlohmann::json ReadKubernetes(const codec::Node& node, std::string& kubernetes_namespace,
                              codec::Diagnostics& diagnostics);

}  // namespace muster::job
