// Shared by the platforms that are observed (Platform::is_observed): turns one observation of a job
// into changes of its records. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/failure.h"
#include "job/submission.h"

namespace muster {

// The local records of a job.
struct KnownJob {
  const JobRecord& job;
  const std::vector<TaskRecord>& tasks;
  const Submission& submission;
  // Returns the last lines of a task's output, for a failure report.
  std::function<std::vector<std::string>(const TaskId&)> last_lines;
};

// Collects the differences between one observation and the known records. Not thread-safe.
class Observer {
 public:
  // `known` must outlive this. Clears the supervisor of the record: the platform now owns the job.
  Observer(const KnownJob& known, absl::Time now);

 protected:
  // Appends an event.
  void Tell(std::string kind, std::string subject, std::string message);
  // Returns the known record of a task, or a new one.
  TaskRecord Before(const TaskId& task) const;
  // Sets the new record of a task. Call once for each task that still exists.
  void After(const TaskRecord& task);
  // Concludes a job that is absent from the platform: Failed if its submitter died before creating
  // it, otherwise Stopped with `reason`.
  void Vanished(const std::string& reason);
  // Returns, as JSON, the report of the failed tasks in order of time and of the tasks stopped with
  // them. REQUIRES: After() was called for every task.
  std::string Failure(const std::function<TaskFailure(const TaskRecord&)>& describe) const;
  // Appends an event if the job is final. Returns nullopt if nothing has changed.
  std::optional<StateChange> Finish();

  const KnownJob& known_;
  const absl::Time now_;
  StateChange change_;
  std::vector<TaskRecord> tasks_;  // all current tasks
};

}  // namespace muster
