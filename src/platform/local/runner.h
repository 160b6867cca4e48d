// Runs the tasks of a job as processes on this machine.
#pragma once

#include <memory>
#include <string>

#include "supervise/job_dir.h"
#include "supervise/ports.h"
#include "supervise/processes.h"
#include "supervise/runner.h"

namespace muster::local {

class LocalRunner final : public Runner {
 public:
  // `loop` and `events` must outlive this.
  LocalRunner(JobDir dir, const std::string& job_id, EventLoop& loop, RunnerEvents& events);

  absl::string_view platform() const override { return "local"; }
  absl::StatusOr<ClusterSpec> Assign(const Submission& next, const ClusterSpec& current) override;
  void Release(const ClusterSpec& left, const ClusterSpec& kept) override;
  std::optional<std::string> AnotherAddress(const TaskId& task, absl::string_view address) override;
  bool IsPicked(const JobSpec& spec, const TaskId& task) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task, int attempt, int restarts) const override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current, const ClusterSpec& cluster,
                                        const Submission& next) const override;
  std::string HostOf(const TaskId&) const override { return host_; }
  absl::Status Reachability(const TaskId&) const override { return absl::OkStatus(); }

  void SetPolicies(const Policies& policies) override { processes_.SetPolicies(policies); }
  void Start(const TaskStart& start) override { processes_.Start(start); }
  void End(const TaskId& task, bool kill) override { processes_.End(task, kill); }
  void Forget(const TaskId& task) override { processes_.Forget(task); }

  void OnChildren() override { processes_.OnChildren(); }
  absl::Time next_timer() const override { return processes_.next_timer(); }
  void Advance() override { processes_.Advance(); }
  bool Finish() override;

 private:
  const JobDir dir_;
  const std::string host_;
  RunnerEvents& events_;
  PortReservations ports_;
  Processes processes_;
};

}  // namespace muster::local
