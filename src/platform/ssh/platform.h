// Runs jobs on hosts that are reached by ssh, each job under a supervisor on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/ssh/provision.h"
#include "platform/supervised_platform.h"

namespace muster::ssh {

struct SshOptions {
  std::string program;  // the muster binary
  std::string home;
  std::function<void(const std::string&)> notice;  // reports slow steps; called from any thread
  std::function<bool()> interrupted;  // returns true to cancel slow steps; called from any thread
};

class SshPlatform final : public SupervisedPlatform {
 public:
  explicit SshPlatform(SshOptions options)
      : SupervisedPlatform(options.program), options_(std::move(options)) {}

  absl::string_view name() const override { return "ssh"; }
  bool is_slow() const override { return true; }
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  // Assigns a host to every task. Connects to no host.
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission& submission) const override;
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;

 private:
  absl::StatusOr<ProvisionOptions> MakeProvisionOptions() const;
  absl::StatusOr<UpdatePlan> PlanChange(const JobDir& dir, const Submission& current,
                                        const ClusterSpec& cluster,
                                        const Submission& next) const override;

  const SshOptions options_;
};

}  // namespace muster::ssh
