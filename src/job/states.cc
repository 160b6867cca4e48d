#include "job/states.h"

#include "job/enum_names.h"

namespace muster::job {

template <>
struct EnumNames<JobState> {
  static constexpr std::pair<JobState, const char*> kAll[] = {
      {JobState::kPending, "Pending"},        {JobState::kStarting, "Starting"},
      {JobState::kRunning, "Running"},        {JobState::kRestarting, "Restarting"},
      {JobState::kSuspended, "Suspended"},    {JobState::kSucceeded, "Succeeded"},
      {JobState::kFailed, "Failed"},          {JobState::kStopped, "Stopped"},
      {JobState::kUnreachable, "Unreachable"}};
};

template <>
struct EnumNames<TaskState> {
  static constexpr std::pair<TaskState, const char*> kAll[] = {
      {TaskState::kPending, "Pending"},     {TaskState::kStarting, "Starting"},
      {TaskState::kRunning, "Running"},     {TaskState::kRestarting, "Restarting"},
      {TaskState::kSucceeded, "Succeeded"}, {TaskState::kFailed, "Failed"},
      {TaskState::kStopped, "Stopped"},     {TaskState::kLost, "Lost"}};
};

absl::string_view ToString(JobState state) { return NameOf(state); }
absl::string_view ToString(TaskState state) { return NameOf(state); }

std::vector<std::string> JobStateNames() { return NamesOf<JobState>(); }

std::optional<JobState> ParseJobState(absl::string_view name) { return FromName<JobState>(name); }
std::optional<TaskState> ParseTaskState(absl::string_view name) {
  return FromName<TaskState>(name);
}

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed || state == JobState::kStopped;
}
bool IsFinal(TaskState state) {
  return state == TaskState::kSucceeded || state == TaskState::kFailed ||
         state == TaskState::kStopped;
}

}  // namespace muster::job
