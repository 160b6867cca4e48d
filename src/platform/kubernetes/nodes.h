// The nodes of a cluster as machines. Pure.
#pragma once

#include "k8s/resource.h"
#include "platform/machine.h"

namespace muster::kubernetes {

// Fills in what the Node object contains: provider, region, size, external address, and NotReady
// for a node of running tasks that is not ready.
void Describe(const k8s::Json& node, platform::Machine& machine);

}  // namespace muster::kubernetes
