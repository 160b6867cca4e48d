// Where jobs run. One implementation a platform: local/ (processes of this machine).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/event_sink.h"
#include "launch/lifecycle.h"
#include "launch/log_reader.h"
#include "launch/submission.h"

namespace muster {

// Tells that a job changed, so that whoever shows it need not ask again and again.
class JobWatch {
 public:
  virtual ~JobWatch() = default;
  virtual int fd() const = 0;  // readable when there may be something new
  // Takes what was signalled. False: nothing will come any more.
  virtual bool Drain() = 0;
};

// What a platform knows of a job that its record calls unfinished.
enum class Liveness {
  kAlive,
  kGone,     // nothing runs any more, and it did not say how it ended
  kUnknown,  // the platform does not answer: nothing may be concluded
};

// Called from one thread. Jobs go on without the process that submitted them.
class Platform {
 public:
  virtual ~Platform() = default;

  virtual absl::string_view name() const = 0;
  // Starts the job and returns when it is certain to go on by itself. `record` is already kept in
  // the history; the platform reports everything after that.
  virtual absl::Status Submit(const Submission& submission, const JobRecord& record) = 0;
  virtual Liveness Check(const JobRecord& job) = 0;
  // Asks the job to end, and does not wait for it. `at_once`: without a grace period.
  virtual absl::Status Stop(const JobRecord& job, bool at_once) = 0;
  // What Update would do.
  virtual absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job,
                                                const std::vector<TaskRecord>& tasks,
                                                const Submission& next) = 0;
  virtual absl::Status Update(const JobRecord& job, const Submission& next) = 0;
  // Unavailable when the job has ended.
  virtual absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) = 0;
  virtual absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                          const std::vector<TaskId>& tasks) = 0;
};

}  // namespace muster
