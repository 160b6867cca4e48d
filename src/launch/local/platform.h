// Jobs as processes of this machine, each job under a supervisor of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/platform.h"

namespace muster::local {

class LocalPlatform final : public Platform {
 public:
  // `program` is the muster binary: it is started again as the supervisor. Jobs have their folders
  // in `home`.
  LocalPlatform(std::string program, std::string home)
      : program_(std::move(program)), home_(std::move(home)) {}

  absl::string_view name() const override { return "local"; }
  std::vector<std::string> Unsupported(const JobSpec& spec) const override;
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission&) const override { return "on this machine"; }
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;
  Liveness Check(const JobRecord& job) override;
  absl::Status Stop(const JobRecord& job, bool at_once) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;

 private:
  const std::string program_;
  const std::string home_;
};

// Ends what a job whose supervisor and guard were both killed has left running: every process of
// this user that carries the job's id in its environment. Returns how many there were.
int KillLeftovers(const std::string& job_id);

}  // namespace muster::local
