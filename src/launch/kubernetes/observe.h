// What has become of a job in a cluster: from its TFJob and pods to the records that are kept of
// it. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "launch/kubernetes/pod_status.h"
#include "launch/submission.h"

namespace muster::kubernetes {

// All that is seen of a job at one time.
struct Sight {
  std::optional<Json> job;  // nullopt: it is not there any more
  std::vector<Json> pods;
  absl::Time now;
};

// What is known of it here.
struct Known {
  const JobRecord& job;
  const std::vector<TaskRecord>& tasks;
  const Submission& submission;
  // The last lines of a task's output, for a failure report.
  std::function<std::vector<std::string>(const TaskId&)> last_lines;
};

// The job's verdict, if it has one.
std::optional<JobState> VerdictOf(const Json& job);

// A job that is not in the history, by its own name.
JobRecord RecordOf(const Json& job, absl::Time now);

// What is to be written down; nullopt when nothing has changed. A record that is final stays.
std::optional<StateChange> Compare(const Known& known, const Sight& sight);

}  // namespace muster::kubernetes
