// The interface to the places where jobs run. Implementations: local/ (processes on this machine),
// ssh/ (processes on other hosts), kubernetes/ (TFJobs) and vertex/ (CustomJobs of Vertex AI).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "platform/unsupported.h"
#include "supervise/lifecycle.h"
#include "supervise/log_reader.h"

namespace muster {

// Placeholder for an address whose port has not been picked yet. Port 1 is never picked.
inline constexpr char kUnassigned[] = "127.0.0.1:1";

// Notifies of changes to one job, so that a display need not poll.
class JobWatch {
 public:
  virtual ~JobWatch() = default;
  // Readable when the job may have changed.
  virtual int fd() const = 0;
  // Clears the pending notification. Returns false when no further notification will come.
  virtual bool Drain() = 0;
};

// State of a job that its record calls unfinished.
enum class Liveness {
  kAlive,
  kGone,     // nothing runs, and no outcome was recorded
  kUnknown,  // the platform does not answer: no conclusion is possible
};

// Not thread-safe: all methods are called from one thread. A job outlives the process that
// submitted it.
class Platform {
 public:
  virtual ~Platform() = default;

  virtual absl::string_view name() const = 0;
  // Returns the fields of the job that this platform ignores or rejects. A submission with a fatal
  // limit must not be passed to Prepare().
  virtual std::vector<Limit> Unsupported(const Submission& /*submission*/) const { return {}; }
  // Returns true if tasks are processes on this machine and see its files.
  virtual bool runs_here() const { return false; }
  // Resolves submission.target and checks that the job can run there. Has no effect outside
  // `submission`.
  virtual absl::Status Prepare(Submission& submission) = 0;
  // Returns the target of a prepared submission for display, such as "on this machine".
  virtual std::string Describe(const Submission& submission) const = 0;
  // Returns the addresses of the job's tasks. An address that is not known before the start is
  // kUnassigned.
  virtual absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const = 0;
  // Returns the command, environment and files of a task's first attempt, given the addresses of
  // all tasks in `cluster`.
  virtual absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission,
                                              const ClusterSpec& cluster,
                                              const TaskId& task) const = 0;
  // Starts the job. Returns once the job no longer depends on this process. REQUIRES: `record` is
  // in the history; the platform reports every later change. Returns Unknown if the job may have
  // started; Observe() then determines the outcome.
  virtual absl::Status Submit(const Submission& submission, const JobRecord& record) = 0;
  // Returns the liveness of a job that its record calls unfinished.
  virtual Liveness Check(const JobRecord& job) = 0;
  // Returns true if no process on this machine reports the state of jobs. The caller then polls
  // Observe() and applies the result to the history.
  virtual bool is_observed() const { return false; }
  // Returns true if Submit() may take long. The caller then must not hold the lock of the history.
  virtual bool is_slow() const { return is_observed(); }
  // Compares the platform's state of the job with the records. Returns the difference, nullopt if
  // there is none, or an error if the platform does not answer.
  virtual absl::StatusOr<std::optional<StateChange>> Observe(
      const JobRecord& /*job*/, const std::vector<TaskRecord>& /*tasks*/) {
    return std::nullopt;
  }
  // Returns all jobs at `where`, including those that others submitted, under the platform's own
  // ids. Returns an empty list where is_observed() is false: the history is complete there.
  virtual absl::StatusOr<std::vector<JobRecord>> List(const Target& /*where*/) {
    return std::vector<JobRecord>();
  }
  // Returns a job from List() as a submission whose id no other job ever has, or NotFound.
  virtual absl::StatusOr<Submission> Import(const std::string& id, const Target& /*where*/) {
    return absl::NotFoundError(absl::StrCat("no job '", id, "' of others on ", name()));
  }
  // Requests the end of the job and returns without waiting for it. `immediately` skips the grace
  // period.
  virtual absl::Status Stop(const JobRecord& job, bool immediately) = 0;
  // Returns the changes that Update() would make. Changes nothing.
  virtual absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job,
                                                const std::vector<TaskRecord>& tasks,
                                                const Submission& next) = 0;
  // Replaces the specification of a running job with `next`, keeping its id.
  virtual absl::Status Update(const JobRecord& job, const Submission& next) = 0;
  // Returns a watch on the job, or Unavailable if the job has ended.
  virtual absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) = 0;
  // Returns the output of `tasks`, merged by time.
  virtual absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                          const std::vector<TaskId>& tasks) = 0;
  // Sets the interval between polls of a platform that sends no notifications. Returns
  // InvalidArgument on a platform that sends them.
  virtual absl::Status SetPollingInterval(absl::Duration /*interval*/) {
    return absl::InvalidArgumentError(
        absl::StrCat("--polling-interval is for jobs on vertex; ", name(), " tells at once"));
  }
};

}  // namespace muster
