// States of jobs and tasks, and their names.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace muster {

//   Pending ─> Starting ─> Running ─> Succeeded | Failed | Stopped
//                 ^            │
//                 └─ Restarting┘   (Suspended returns to Starting too)
//
// Unreachable: the platform does not answer, so nothing is known; never a reason to kill anything.
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
  kStarting,  // its process exists, it is not ready yet
  kRunning,
  kRestarting,  // ended, waits for its next attempt
  kSucceeded,
  kFailed,
  kStopped,  // ended because Muster ended it
  kLost,     // its supervisor died; nothing more is known
};

absl::string_view ToString(JobState state);
absl::string_view ToString(TaskState state);
std::optional<JobState> ParseJobState(absl::string_view name);
std::optional<TaskState> ParseTaskState(absl::string_view name);

// Succeeded, Failed and Stopped: a state that never changes again.
bool IsFinal(JobState state);
bool IsFinal(TaskState state);

}  // namespace muster
