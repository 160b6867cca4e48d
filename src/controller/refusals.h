// Objects that the API server refuses to create: a quota is used up, a policy or a webhook denies
// them, or they are invalid. They are tried again with growing delay, and the job's condition says
// why they are missing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "controller/reconcile.h"

namespace muster::controller {

// Whether a creation failed because of what was to be created, or where: the same request would
// fail again at once.
bool IsRefusal(const absl::Status& status);

// Records that an object was refused, again or for the first time.
void AddRefusal(Refusals& refusals, const ObjectName& object, const absl::Status& status,
                absl::Time now);

// All of them in one line, the same for the same objects and the same reason. Not of none.
std::string Describe(const Refusals& refusals);

}  // namespace muster::controller
