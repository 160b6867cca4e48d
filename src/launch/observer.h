// What the platforms share whose jobs are looked at: from what is seen to the records that are
// kept. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/failure.h"
#include "launch/submission.h"

namespace muster {

// What is known of a job here.
struct KnownJob {
  const JobRecord& job;
  const std::vector<TaskRecord>& tasks;
  const Submission& submission;
  // The last lines of a task's output, for a failure report.
  std::function<std::vector<std::string>(const TaskId&)> last_lines;
};

// Holds what is to be written down while one look is compared with what is known.
class Observer {
 public:
  // `known` outlives it. The job has no supervisor any more: its platform looks after it.
  Observer(const KnownJob& known, absl::Time now);

 protected:
  void Tell(std::string kind, std::string subject, std::string message);
  // The record of a task as it was; a new one when it was not there.
  TaskRecord Before(const TaskId& task) const;
  // What has become of it.
  void After(const TaskRecord& task);
  // Failed because its submitter died before there was anything on the platform, else Stopped for
  // `reason`.
  void Vanished(const std::string& reason);
  // The report of the tasks that failed, in order of time, and of those that fell with them.
  std::string Failure(const std::function<TaskFailure(const TaskRecord&)>& describe) const;
  // Tells of a verdict. nullopt when nothing has changed.
  std::optional<StateChange> Finish();

  const KnownJob& known_;
  const absl::Time now_;
  StateChange change_;
  std::vector<TaskRecord> tasks_;  // as they are now, all of them
};

}  // namespace muster
