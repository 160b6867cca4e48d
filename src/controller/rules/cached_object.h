// Trims objects before the operator caches them.
#pragma once

#include "controller/rules/conditions.h"

namespace muster::controller {

// Removes metadata.managedFields, which is about half of an object.
void DropManagedFields(Json& object);

// Removes all members of a pod or service that no rule reads. A cluster may hold many pods, and
// only their status and a few labels and annotations matter: the spec is in the job's template.
void TrimForCache(Json& object);

}  // namespace muster::controller
