// The pods and services of a job that is running.
#pragma once

#include "controller/rules/reconcile_context.h"

namespace muster::controller {

// Creates missing pods and services, and deletes those that are superfluous or to be replaced.
void ReconcileReplicas(ReconcileContext& context);

// Deletes the pods from before the last restart of the whole job.
void RemoveFormer(ReconcileContext& context);

// Returns whether the task is TensorBoard, which lives as long as the TFJob object.
bool IsTensorboard(const cluster::TaskId& task);
void EnsureTensorboard(ReconcileContext& context);

}  // namespace muster::controller
