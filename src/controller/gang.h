// A job's PodGroup, by which a scheduler starts all of its pods or none.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "controller/pass.h"

namespace muster::controller {

// By the name that users give it: none, volcano, scheduler-plugins. Else InvalidArgument.
absl::StatusOr<GangScheduler> GangSchedulerFromName(absl::string_view name);

// What it calls groups. Not of kNone.
const k8s::ResourceKind& PodGroupKind(GangScheduler scheduler);

// Makes the job's group, or makes it as it should be. Returns whether pods may be made: the group
// must exist, so that the scheduler knows which pods wait for each other, and Volcano must have
// admitted it.
bool KeepGang(Pass& pass);
// A job without pods has none.
void RemoveGang(Pass& pass);

// What a pod must say to be of its job's group.
void JoinGang(const TfJob& job, const std::string& role, Json& pod);

}  // namespace muster::controller
