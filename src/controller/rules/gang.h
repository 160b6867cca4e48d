// A job's PodGroup, by which a gang scheduler starts all of the job's pods or none.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "controller/rules/reconcile_context.h"

namespace muster::controller {

// Parses the value of --gang-scheduler: none, volcano or scheduler-plugins. Else InvalidArgument.
absl::StatusOr<GangScheduler> GangSchedulerFromName(absl::string_view name);

// Returns the scheduler's PodGroup kind. REQUIRES: `scheduler` is not kNone.
const k8s::ResourceKind& PodGroupKind(GangScheduler scheduler);
// Returns the resource of a kind of owned object.
const k8s::ResourceKind& ResourceOf(Kind kind, GangScheduler scheduler);

// Creates or updates the job's PodGroup. Returns whether pods may be created: the group must
// exist, so that the scheduler recognizes which pods belong together, and Volcano must have
// admitted it.
bool EnsurePodGroup(ReconcileContext& context);
// Deletes the PodGroup of a job that has no pods.
void RemovePodGroup(ReconcileContext& context);

// Sets the labels, annotations and scheduler name by which a pod joins the job's group.
void AddToPodGroup(const TfJob& job, const std::string& role, Json& pod);

}  // namespace muster::controller
