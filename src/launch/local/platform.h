// Jobs as processes of this machine, each job under a supervisor of its own.
#pragma once

#include <string>

#include "launch/supervised_platform.h"

namespace muster::local {

class LocalPlatform final : public SupervisedPlatform {
 public:
  // Jobs have their folders in `home`.
  LocalPlatform(std::string program, std::string home)
      : SupervisedPlatform(std::move(program)), home_(std::move(home)) {}

  absl::string_view name() const override { return "local"; }
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  bool runs_here() const override { return true; }
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission&) const override { return "on this machine"; }
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;

 private:
  absl::StatusOr<UpdatePlan> PlanChange(const JobDir& dir, const Submission& current,
                                        const ClusterSpec& cluster,
                                        const Submission& next) const override;

  const std::string home_;
};

// Ends what a job whose supervisor and guard were both killed has left running: every process of
// this user that carries the job's id in its environment. Returns how many there were.
int KillLeftovers(const std::string& job_id);

}  // namespace muster::local
