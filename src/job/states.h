// States of jobs and tasks, and their names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::job {

//   Pending ─> Starting ─> Running ─> Succeeded | Failed | Stopped
//                 ^            │
//                 └─ Restarting┘   (Suspended returns to Starting too)
//
// Unreachable: the platform does not respond, so the state is unknown. It is never a reason to end
// processes.
enum class JobState {
  kPending,
  kStarting,
  kRunning,
  kRestarting,
  kSuspended,
  kSucceeded,
  kFailed,
  kStopped,
  kUnreachable,
};

enum class TaskState {
  kPending,   // not started yet
  kStarting,  // its process exists but is not ready
  kRunning,
  kRestarting,  // ended; its next attempt is pending
  kSucceeded,
  kFailed,
  kStopped,  // ended by Muster
  kLost,     // its supervisor died; the outcome is unknown
};

absl::string_view ToString(JobState state);
absl::string_view ToString(TaskState state);
std::vector<std::string> JobStateNames();
std::optional<JobState> ParseJobState(absl::string_view name);
std::optional<TaskState> ParseTaskState(absl::string_view name);

// Returns true for Succeeded, Failed and Stopped, which never change again.
bool IsFinal(JobState state);
bool IsFinal(TaskState state);

}  // namespace muster::job
