// Shared by the platforms whose state is polled (StateSource): turns one observation of a job into
// changes of its records. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/failure.h"
#include "job/submission.h"

namespace muster::platform {

// The reason of a job whose submitter died before the platform, or a supervisor, took over.
inline constexpr char kSubmissionInterrupted[] = "it never started: `muster run` was interrupted";

// The local records of a job.
struct KnownJob {
  const job::JobRecord& job;
  const std::vector<job::TaskRecord>& tasks;
  const job::Submission& submission;
  // Returns the last lines of a task's output, for a failure report.
  std::function<std::vector<std::string>(const cluster::TaskId&)> last_lines;
};

// Collects the differences between one observation and the known records. Not thread-safe.
class Observer {
 public:
  // `known` must outlive this. Clears the supervisor of the record: the platform now owns the job.
  Observer(const KnownJob& known, absl::Time now);
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Returns the changes, or nullopt if nothing has changed. Call once. `deleted` is the reason
  // recorded for a job that is absent from the platform.
  std::optional<job::StateChange> Run(const std::string& deleted);

 protected:
  // Reads the state of the job into change_. Returns false if it is absent from the platform.
  virtual bool ReadJob() = 0;
  // Calls SetTask() once for each task that still exists.
  virtual void ReadTasks() = 0;
  // Describes a task that has failed.
  virtual job::TaskFailure FailureOf(const job::TaskRecord& task) const = 0;

  // Appends an event.
  void RecordEvent(std::string kind, std::string subject, std::string message);
  // Returns the known record of a task, or a new one.
  job::TaskRecord KnownTask(const cluster::TaskId& task) const;
  // Sets the new record of a task.
  void SetTask(const job::TaskRecord& task);
  const KnownJob& known_;
  const absl::Time now_;
  job::StateChange change_;
  std::vector<job::TaskRecord> tasks_;  // all current tasks

 private:
  // Concludes a job that is absent from the platform: Failed if its submitter died before creating
  // it, otherwise Stopped with `reason`.
  void ConcludeAbsent(const std::string& reason);
  // Returns, as JSON, the report of the failed tasks in order of time and of the tasks stopped with
  // them. REQUIRES: ReadTasks() was called.
  std::string Failure() const;
  // Appends an event if the job is final. Returns nullopt if nothing has changed.
  std::optional<job::StateChange> Finish();
};

}  // namespace muster::platform
