// The fields of Kubernetes' pod templates, and what they hold.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster {

// A value of another type than Kubernetes has for the field, which it would refuse, is a
// diagnostic; a field that it does not have, which it would drop, a warning. `type` is the one of
// core/v1 that `node` should be: "PodTemplateSpec", "PodSpec", "Container", "Volume". `owner` names
// the node in messages: "the template of 'Worker'". A null counts as absent.
void CheckPodFields(const codec::Node& node, absl::string_view type, const std::string& owner,
                    codec::Diagnostics& diagnostics);

}  // namespace muster
