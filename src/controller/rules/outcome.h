// The outcome of a job, and which of its pods are retried.
#pragma once

#include "controller/rules/reconcile_context.h"

namespace muster::controller {

// Returns true if the job has succeeded or failed, and sets its condition. Otherwise counts each
// restart that is due once, in the status, before any pod is replaced.
bool EvaluateOutcome(ReconcileContext& context);

// Returns whether the pod has failed or was lost and has to be replaced.
bool IsReplaced(ReconcileContext& context, const job::RoleSpec& role, const cluster::TaskId& task,
                const Child& pod);

}  // namespace muster::controller
