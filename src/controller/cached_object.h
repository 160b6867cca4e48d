// What the operator remembers of the pods and services in a cluster.
#pragma once

#include "controller/conditions.h"

namespace muster::controller {

// Drops of a pod or service what no rule asks for: there are many of them. What a pod runs is in
// its job; of it only what became of it counts.
void KeepWhatCounts(Json& object);

}  // namespace muster::controller
