// The conditions of a job's status, by the rules that kubectl and Kueue rely on.
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
// The API server rejects objects of the job; Deployments use the same name. It is removed once the
// objects exist, rather than set to False, because kubectl shows the last condition.
inline constexpr char kReplicaFailure[] = "ReplicaFailure";

// Returns whether the condition of that type is True.
bool IsTrue(const Json& status, absl::string_view type);
// Returns whether the job has succeeded or failed. A finished job never changes its outcome.
bool IsFinished(const Json& status);

struct Condition {
  std::string type;
  bool value = true;
  std::string reason;
  std::string message;
};

// Sets a condition and moves it to the end, where kubectl shows it. Does nothing if the condition
// is unchanged or the job is finished. Running and Restarting exclude each other, and a finished
// job is not Running.
void SetCondition(Json& status, const Condition& condition, absl::Time now);
// Removes a condition, unless the job is finished.
void RemoveCondition(Json& status, absl::string_view type);

}  // namespace muster::controller
