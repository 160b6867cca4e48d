// The operator's key of a job: group/namespace/name, since a TFJob and a TfJob may share a name.
#pragma once

#include <string>

#include "k8s/resource.h"

namespace muster::controller {

std::string JobKey(const k8s::ResourceKind& kind, const std::string& name_space,
                   const std::string& name);
std::string KeyOfJob(const k8s::Json& job);
// Of the job that an object belongs to, by its labels; "" when it belongs to none.
std::string JobKeyOf(const k8s::Json& object);

}  // namespace muster::controller
