// Runs the tasks of a job as processes on this machine.
#pragma once

#include <memory>
#include <string>

#include "supervise/job_dir.h"
#include "supervise/ports.h"
#include "supervise/processes.h"
#include "supervise/runner.h"

namespace muster::local {

class LocalRunner final : public supervise::Runner {
 public:
  // `loop` and `events` must outlive this.
  LocalRunner(supervise::JobDir dir, const std::string& job_id, process::EventLoop& loop,
              supervise::RunnerEvents& events);

  absl::string_view platform() const override { return "local"; }
  absl::StatusOr<cluster::ClusterSpec> Assign(const job::Submission& next,
                                              const cluster::ClusterSpec& current) override;
  void Release(const cluster::ClusterSpec& left, const cluster::ClusterSpec& kept) override;
  std::optional<std::string> AnotherAddress(const cluster::TaskId& task,
                                            absl::string_view address) override;
  bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) const override;
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                           const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task, int attempt,
                                           int restarts) const override;
  absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::Submission& current,
                                                   const cluster::ClusterSpec& cluster,
                                                   const job::Submission& next) const override;
  std::string HostOf(const cluster::TaskId&) const override { return host_; }
  absl::Status Reachability(const cluster::TaskId&) const override { return absl::OkStatus(); }

  void SetPolicies(const job::Policies& policies) override { processes_.SetPolicies(policies); }
  void Start(const supervise::TaskStart& start) override { processes_.Start(start); }
  void End(const cluster::TaskId& task, bool kill) override { processes_.End(task, kill); }
  void Forget(const cluster::TaskId& task) override { processes_.Forget(task); }

  void OnChildren() override { processes_.OnChildren(); }
  absl::Time next_timer() const override { return processes_.next_timer(); }
  void Advance() override { processes_.Advance(); }
  bool Finish() override;

 private:
  // Returns the folder in which an attempt after the first one starts: the working directory, or,
  // if the program was edited since the job was started, a view of the version that it was started
  // with.
  absl::StatusOr<std::string> WorkFolder(const job::Submission& submission,
                                         const cluster::TaskId& task) const;

  const supervise::JobDir dir_;
  const std::string host_;
  supervise::RunnerEvents& events_;
  supervise::PortReservations ports_;
  supervise::Processes processes_;
};

}  // namespace muster::local
