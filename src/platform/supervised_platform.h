// Base of the platforms whose jobs run under a supervisor on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/capabilities.h"
#include "platform/platform.h"
#include "supervise/job_dir.h"

namespace muster::platform {

class SupervisedPlatform : public Platform, public Supervision, public JobUpdater {
 public:
  std::vector<Limit> Unsupported(const job::Submission& submission) const override;
  Liveness Check(const job::JobRecord& job) override;
  int KillLeftovers(const job::JobRecord& job) override;
  absl::Status Stop(const job::JobRecord& job, bool immediately) override;
  absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::JobRecord& job,
                                                   const std::vector<job::TaskRecord>& tasks,
                                                   const job::Submission& next) override;
  absl::Status Update(const job::JobRecord& job, const job::Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const job::JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<supervise::LogStream>> Logs(
      const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) override;

 protected:
  // `program` is the path of the muster binary, which also runs as the supervisor.
  SupervisedPlatform(Traits traits, std::string program)
      : Platform(std::move(traits)), program_(std::move(program)) {}

  // Starts the supervisor of the job in `dir` and returns once it is ready to start tasks.
  // REQUIRES: the submission is saved in `dir`. Returns FailedPrecondition with the supervisor's
  // own message if it fails.
  absl::Status StartSupervisor(const supervise::JobDir& dir) const;
  // Returns the changes that `next` makes to the running job. REQUIRES: `next` has the id and the
  // resume point of `current`.
  virtual absl::StatusOr<supervise::UpdatePlan> PlanChange(const supervise::JobDir& dir,
                                                           const job::Submission& current,
                                                           const cluster::ClusterSpec& cluster,
                                                           const job::Submission& next) const = 0;

  const std::string program_;
};

}  // namespace muster::platform
