// Checks the fields of Kubernetes pod templates and their types.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::job {

// Reports an error for a value of the wrong type, which Kubernetes rejects, and a warning for an
// unknown field, which Kubernetes drops. `type` is the core/v1 type of `node`: "PodTemplateSpec",
// "PodSpec", "Container", "Volume". `owner` names the node in messages: "the template of 'Worker'".
// A null counts as absent.
void CheckPodFields(const codec::Node& node, absl::string_view type, const std::string& owner,
                    codec::Diagnostics& diagnostics);

}  // namespace muster::job
