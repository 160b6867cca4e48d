// Runs jobs on hosts that are reached by ssh, each job under a supervisor on this machine.
#pragma once

#include <string>
#include <vector>

#include "platform/registration.h"
#include "platform/ssh/provision.h"
#include "platform/supervised_platform.h"

namespace muster::ssh {

class SshPlatform final : public platform::SupervisedPlatform,
                          public platform::TargetPreflight,
                          public platform::MachineInventory {
 public:
  SshPlatform(platform::Traits traits, platform::Environment environment);

  std::vector<platform::Limit> Unsupported(const job::Submission& submission) const override;
  // Assigns a host to every task. Connects to no host.
  absl::Status Prepare(job::Submission& submission) override;
  absl::StatusOr<cluster::ClusterSpec> Addresses(const job::Submission& submission) const override;
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                           const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task) const override;
  absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) override;
  absl::Status Update(const job::JobRecord& job, const job::Submission& next) override;
  absl::StatusOr<std::vector<platform::Finding>> CheckTarget(const job::Target& target) override;
  std::vector<platform::Machine> Machines(const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks) override;

 private:
  absl::StatusOr<ProvisionOptions> MakeProvisionOptions() const;
  absl::StatusOr<supervise::UpdatePlan> PlanChange(const supervise::JobDir& dir,
                                                   const job::Submission& current,
                                                   const cluster::ClusterSpec& cluster,
                                                   const job::Submission& next) const override;

  const platform::Environment environment_;
};

}  // namespace muster::ssh
