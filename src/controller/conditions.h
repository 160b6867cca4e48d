// The conditions of a job's status, by the rules that its readers (kubectl, Kueue) count on.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "k8s/resource.h"

namespace muster::controller {

using k8s::Json;

inline constexpr char kCreated[] = "Created";
inline constexpr char kRunning[] = "Running";
inline constexpr char kRestarting[] = "Restarting";
inline constexpr char kSucceeded[] = "Succeeded";
inline constexpr char kSuspended[] = "Suspended";
inline constexpr char kFailed[] = "Failed";
// Objects that the job needs cannot be created; as Deployments call it. It is removed, not made
// False, once they can be: the last condition is the one that is shown.
inline constexpr char kReplicaFailure[] = "ReplicaFailure";

// Whether the condition of that type is True.
bool IsTrue(const Json& status, absl::string_view type);
// Succeeded or failed: nothing of it ever changes again.
bool IsFinished(const Json& status);

// What a condition says.
struct Condition {
  std::string type;
  bool value = true;
  std::string reason;
  std::string message;
};

// Puts the condition last, which is the one that is shown, unless it says nothing new. Running and
// Restarting exclude each other; a finished job is not running; a finished one is left alone.
void SetCondition(Json& status, const Condition& condition, absl::Time now);
// Unless the job is finished.
void RemoveCondition(Json& status, absl::string_view type);

}  // namespace muster::controller
