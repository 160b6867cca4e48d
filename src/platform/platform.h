// The interface to the places where jobs run. Each folder here implements it for one of them.
//
// `Platform` has the operations of every platform. An operation of only some of them is a
// capability (platform/capabilities.h). A platform registers itself with platform/registration.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "job/task_launch.h"
#include "platform/unsupported.h"
#include "supervise/log/log_reader.h"

namespace muster::platform {

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

// How tasks get the files of the working directory.
enum class WorkDirUse {
  kNone,    // not at all: they are in an image
  kShared,  // tasks run in the directory itself
  kSent,    // tasks run in a copy that was sent when the job started or was changed
};

// Facts of a platform that hold for all of its jobs.
struct Traits {
  std::string name;   // "kubernetes": the value of --on, and JobRecord::platform
  std::string title;  // "Kubernetes": completes "jobs on …" in messages and help
  // Tasks are processes on this machine and see its files.
  bool runs_here = false;
  // The built-in trainer is the program installed here, not part of an image.
  bool uses_installed_trainer = false;
  // Submit() may take long. The caller must not hold the lock on submissions meanwhile.
  bool slow_to_submit = false;
  WorkDirUse work_dir = WorkDirUse::kNone;
  // Machines, and so addresses, are assigned when a job starts.
  bool assigns_addresses_late = false;
  // Tasks run on machines that the user named, so a job is shown with its machines.
  bool shows_machines = false;
};

// Not thread-safe: all methods are called from one thread. A job outlives the process that
// submitted it.
class Platform {
 public:
  virtual ~Platform() = default;
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  const Traits& traits() const { return traits_; }
  const std::string& name() const { return traits_.name; }

  // Returns the fields of the job that this platform ignores or rejects. A submission with a fatal
  // limit must not be passed to Prepare().
  virtual std::vector<Limit> Unsupported(const job::Submission& submission) const = 0;
  // Resolves submission.target and checks that the job can run there. Has no effect outside
  // `submission`.
  virtual absl::Status Prepare(job::Submission& submission) = 0;
  // Returns the addresses of the job's tasks. An address that is not known before the start is
  // kUnassigned.
  virtual absl::StatusOr<cluster::ClusterSpec> Addresses(
      const job::Submission& submission) const = 0;
  // Returns the command, environment and files of a task's first attempt, given the addresses of
  // all tasks in `cluster`.
  virtual absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                                   const cluster::ClusterSpec& cluster,
                                                   const cluster::TaskId& task) const = 0;
  // Starts the job. Returns once the job no longer depends on this process. REQUIRES: `record` is
  // in the history; the platform reports every later change. Returns Unknown if the job may have
  // started; StateSource::Observe() then determines the outcome.
  virtual absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) = 0;
  // Requests the end of the job and returns without waiting for it. `immediately` skips the grace
  // period.
  virtual absl::Status Stop(const job::JobRecord& job, bool immediately) = 0;
  // Returns a watch on the job, or Unavailable if the job has ended.
  virtual absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const job::JobRecord& job) = 0;
  // Returns the output of `tasks`, merged by time.
  virtual absl::StatusOr<std::unique_ptr<supervise::LogStream>> Logs(
      const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) = 0;

 protected:
  explicit Platform(Traits traits) : traits_(std::move(traits)) {}

 private:
  const Traits traits_;
};

}  // namespace muster::platform
