// Base of the platforms whose jobs run under a supervisor on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "supervise/job_dir.h"

namespace muster {

class SupervisedPlatform : public Platform {
 public:
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  Liveness Check(const JobRecord& job) override;
  absl::Status Stop(const JobRecord& job, bool immediately) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;

 protected:
  // `program` is the path of the muster binary, which also runs as the supervisor.
  explicit SupervisedPlatform(std::string program) : program_(std::move(program)) {}

  // Starts the supervisor of the job in `dir` and returns once it is ready to start tasks.
  // REQUIRES: the submission is saved in `dir`. Returns FailedPrecondition with the supervisor's
  // own message if it fails.
  absl::Status StartSupervisor(const JobDir& dir) const;
  // Returns the changes that `next` makes to the running job. REQUIRES: `next` has the id and the
  // resume point of `current`.
  virtual absl::StatusOr<UpdatePlan> PlanChange(const JobDir& dir, const Submission& current,
                                                const ClusterSpec& cluster,
                                                const Submission& next) const = 0;

  const std::string program_;
};

}  // namespace muster
