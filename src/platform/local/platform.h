// Runs jobs as processes on this machine, each under its own supervisor.
#pragma once

#include <string>

#include "platform/supervised_platform.h"

namespace muster::local {

class LocalPlatform final : public SupervisedPlatform {
 public:
  // `program` is the path of the muster binary. Job directories are created in `home`.
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

// Kills the processes of a job whose supervisor and guard were both killed: every process of this
// user with the job's id in its environment. Returns the number of processes killed.
int KillLeftovers(const std::string& job_id);

}  // namespace muster::local
