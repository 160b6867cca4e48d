// Runs jobs as processes on this machine, each under its own supervisor.
#pragma once

#include <string>
#include <vector>

#include "platform/supervised_platform.h"

namespace muster::local {

class LocalPlatform final : public platform::SupervisedPlatform,
                            public platform::JobPreflight,
                            public platform::MachineInventory {
 public:
  // `program` is the path of the muster binary. Job directories are created in `home`.
  LocalPlatform(platform::Traits traits, std::string program, std::string home);

  std::vector<platform::Limit> Unsupported(const job::Submission& submission) const override;
  absl::Status Prepare(job::Submission& submission) override;
  absl::StatusOr<cluster::ClusterSpec> Addresses(const job::Submission& submission) const override;
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                           const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task) const override;
  absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) override;
  absl::StatusOr<std::vector<platform::Finding>> CheckJob(const job::Submission& submission,
                                                          bool thorough) override;
  std::vector<platform::Machine> Machines(const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks) override;

 private:
  absl::StatusOr<supervise::UpdatePlan> PlanChange(const supervise::JobDir& dir,
                                                   const job::Submission& current,
                                                   const cluster::ClusterSpec& cluster,
                                                   const job::Submission& next) const override;

  const std::string home_;
};

}  // namespace muster::local
