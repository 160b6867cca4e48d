// Objects that the API server rejects: a quota is exceeded, a policy or a webhook denies them, or
// they are invalid. Their creation is retried with exponential backoff, and the job's
// ReplicaFailure condition holds the reason.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "controller/rules/reconcile.h"

namespace muster::controller {

// Returns whether a creation failed because of the object or its namespace, so that an immediate
// retry would fail the same way.
bool IsRejected(const absl::Status& status);

// Records that an object was rejected, and when to retry.
void AddCreateFailure(CreateFailures& failures, const ObjectName& object,
                      const absl::Status& status, absl::Time now);

// Returns one line for all failures, which is the same for the same objects and the same reason.
// REQUIRES: `failures` is not empty.
std::string Describe(const CreateFailures& failures);

}  // namespace muster::controller
