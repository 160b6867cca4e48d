// What platforms share whose jobs have a supervisor on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/job_dir.h"
#include "launch/platform.h"

namespace muster {

class SupervisedPlatform : public Platform {
 public:
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  Liveness Check(const JobRecord& job) override;
  absl::Status Stop(const JobRecord& job, bool at_once) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;

 protected:
  // `program` is the muster binary: it is started again as the supervisor.
  explicit SupervisedPlatform(std::string program) : program_(std::move(program)) {}

  // Returns when the supervisor of a job whose submission is in its folder runs, and all it needs
  // to start tasks is there.
  absl::Status StartSupervisor(const JobDir& dir) const;
  // What `next` changes of the job that runs, which keeps its id and where it resumed.
  virtual absl::StatusOr<UpdatePlan> PlanChange(const JobDir& dir, const Submission& current,
                                                const ClusterSpec& cluster,
                                                const Submission& next) const = 0;

  const std::string program_;
};

}  // namespace muster
