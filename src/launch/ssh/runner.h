// Runs a job's tasks on hosts, each under an agent of the job's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/job_dir.h"
#include "launch/log_reader.h"
#include "launch/log_writer.h"
#include "launch/runner.h"
#include "launch/ssh/link.h"
#include "launch/ssh/place.h"

namespace muster::ssh {

class SshRunner final : public Runner {
 public:
  // Returns when every host's agent has answered. The references must outlive it.
  static absl::StatusOr<std::unique_ptr<SshRunner>> Create(JobDir dir, const Submission& submission,
                                                           EventLoop& loop, RunnerEvents& events);

  absl::string_view platform() const override { return "ssh"; }
  absl::StatusOr<ClusterSpec> Assign(const Submission& next, const ClusterSpec& current) override;
  void Release(const ClusterSpec& left, const ClusterSpec& kept) override;
  std::optional<std::string> AnotherAddress(const TaskId& task, absl::string_view address) override;
  bool IsPicked(const JobSpec& spec, const TaskId& task) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task, int attempt, int restarts) const override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const Submission& current, const ClusterSpec& cluster,
                                        const Submission& next) const override;
  std::string HostOf(const TaskId& task) const override;
  absl::Status Reachability(const TaskId& task) const override;

  void SetPolicies(const Policies& policies) override;
  void Start(const TaskStart& start) override;
  void End(const TaskId& task, bool kill) override;
  void Forget(const TaskId& task) override;

  void OnChildren() override;
  absl::Time next_timer() const override;
  void Advance() override;
  bool Finish() override;

 private:
  struct Host {
    PlacedHost placed;
    int tasks = 0;  // that it holds at the start
    std::unique_ptr<Link> link;
    std::deque<int> free_ports;
    std::set<int> used_ports;
    std::string port_error;
    std::map<TaskId, LogPosition> taken;  // how far the logs there were
    bool greeted = false;                 // its agent knows the policies, and was asked for ports
  };
  // The end of an attempt, until its output is here.
  struct HeldEnd {
    AttemptEnd end;
    absl::Time time;
    LogPosition log;
  };
  struct Task {
    std::string host;       // of the attempt that was last started
    std::string next_host;  // of the one after it: another when the job was changed
    int attempt = -1;
    bool alive = false;  // its start was sent, and its end was not reported
    // Its start, until the host is up to take it: nothing of it runs meanwhile.
    std::optional<Json> queued;
    bool withdrawn = false;  // it was to end while it was queued; Advance reports that
    std::unique_ptr<LogWriter> log;
    int log_attempt = -1;
    bool lost_output = false;
    std::optional<HeldEnd> held;
  };

  SshRunner(JobDir dir, EventLoop& loop, RunnerEvents& events)
      : dir_(std::move(dir)), loop_(loop), events_(events) {}
  absl::Status Connect(const Submission& submission);
  absl::Status WaitForPorts();
  void Greet(Host& host);
  void Receive(Host& host, const Message& message);
  void ReceiveTask(Host& host, const std::string& op, const TaskId& id, const Message& message);
  void TakeLog(Host& host, const TaskId& id, Task& task, const Message& message);
  void TellEnd(const Host& host, const TaskId& id, Task& task);
  void Lose(Host& host, const std::string& why);
  void SendQueued(Host& host);
  void ReportWithdrawn();
  static Json LogsOf(const Host& host);

  const JobDir dir_;
  EventLoop& loop_;
  RunnerEvents& events_;
  Policies policies_;
  std::string job_id_;
  std::map<std::string, Host> hosts_;  // by name
  std::map<TaskId, Task> tasks_;
  std::optional<absl::Time> finish_by_;
};

}  // namespace muster::ssh
