// The work queue's key of a job: group/namespace/name. It has the group because a TFJob of v1 and
// a TfJob of v1alpha1 may share a name.
#pragma once

#include <string>

#include "k8s/resource.h"

namespace muster::controller {

std::string JobKey(const k8s::ResourceKind& kind, const std::string& ns, const std::string& name);
std::string KeyOfJob(const k8s::Json& job);
// Returns the key of the job that an object belongs to by its labels, or "".
std::string OwnerKeyOf(const k8s::Json& object);

}  // namespace muster::controller
