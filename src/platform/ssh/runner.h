// Runs the tasks of a job on hosts, each host under an agent of the job.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/ssh/agent_connection.h"
#include "platform/ssh/launch.h"
#include "supervise/job_dir.h"
#include "supervise/log_reader.h"
#include "supervise/log_writer.h"
#include "supervise/runner.h"

namespace muster::ssh {

class SshRunner final : public Runner {
 public:
  // Returns once the agents of all hosts have answered. `loop` and `events` must outlive the
  // result.
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
    AssignedHost placed;
    int tasks = 0;  // number of tasks at the start of the job
    std::unique_ptr<AgentConnection> connection;
    std::deque<int> free_ports;
    std::set<int> used_ports;
    std::string port_error;
    std::map<TaskId, LogPosition> taken;  // log positions received
    bool greeted = false;  // the agent has received the policies and a request for ports
  };
  // An end that is reported once all output before it has been received.
  struct HeldEnd {
    AttemptEnd end;
    absl::Time time;
    LogPosition log;
  };
  struct Task {
    std::string host;       // of the last attempt started
    std::string next_host;  // of the next attempt; differs after an update of the job
    int attempt = -1;
    bool alive = false;  // start was sent, end was not reported
    // Start message that waits for the connection. No attempt runs meanwhile.
    std::optional<Json> queued;
    bool withdrawn = false;  // ended while queued; Advance() reports it
    std::unique_ptr<LogWriter> log;
    int log_attempt = -1;
    bool lost_output = false;
    std::optional<HeldEnd> held;
  };

  SshRunner(JobDir dir, EventLoop& loop, RunnerEvents& events)
      : dir_(std::move(dir)), loop_(loop), events_(events) {}
  absl::Status Connect(const Submission& submission);
  absl::Status WaitForPorts();
  // Configures a new agent: policies and port reservations.
  void Greet(Host& host);
  void Receive(Host& host, const Message& message);
  void ReceiveTask(Host& host, const std::string& op, const TaskId& id, const Message& message);
  void TakeLog(Host& host, const TaskId& id, Task& task, const Message& message);
  // Reports a held end if its output is complete.
  void TellEnd(const Host& host, const TaskId& id, Task& task);
  // Reports the end of all tasks of a host whose agent was given up.
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
