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
#include "supervise/log/log_reader.h"
#include "supervise/log/log_writer.h"
#include "supervise/runner.h"

namespace muster::ssh {

class SshRunner final : public supervise::Runner {
 public:
  // Returns once the agents of all hosts have answered. `loop` and `events` must outlive the
  // result.
  static absl::StatusOr<std::unique_ptr<SshRunner>> Create(supervise::JobDir dir,
                                                           const job::Submission& submission,
                                                           process::EventLoop& loop,
                                                           supervise::RunnerEvents& events);

  absl::string_view platform() const override { return "ssh"; }
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
  std::string HostOf(const cluster::TaskId& task) const override;
  absl::Status Reachability(const cluster::TaskId& task) const override;

  void SetPolicies(const job::Policies& policies) override;
  void Start(const supervise::TaskStart& start) override;
  void End(const cluster::TaskId& task, bool kill) override;
  void Forget(const cluster::TaskId& task) override;

  void OnChildren() override;
  absl::Time next_timer() const override;
  void Advance() override;
  bool Finish() override;

 private:
  struct Host {
    job::AssignedHost placed;
    int tasks = 0;  // number of tasks at the start of the job
    std::unique_ptr<AgentConnection> connection;
    std::deque<int> free_ports;
    std::set<int> used_ports;
    std::string port_error;
    std::map<cluster::TaskId, supervise::LogPosition> taken;  // log positions received
    std::map<cluster::TaskId, Json> sampled;  // time of the last sample received, by its clock
    bool configured = false;  // the agent has received the policies and a request for ports
  };
  // An end that is reported once all output before it has been received.
  struct HeldEnd {
    supervise::AttemptEnd end;
    absl::Time time;
    supervise::LogPosition log;
  };
  struct Task {
    std::string host;       // of the last attempt started
    std::string next_host;  // of the next attempt; differs after an update of the job
    int attempt = -1;
    bool alive = false;  // start was sent, end was not reported
    // Start message that waits for the connection. No attempt runs meanwhile.
    std::optional<Json> queued;
    bool withdrawn = false;  // ended while queued; Advance() reports it
    std::unique_ptr<supervise::LogWriter> log;
    int log_attempt = -1;
    bool lost_output = false;
    std::optional<HeldEnd> held;
  };

  SshRunner(supervise::JobDir dir, process::EventLoop& loop, supervise::RunnerEvents& events)
      : dir_(std::move(dir)), loop_(loop), events_(events) {}
  absl::Status Connect(const job::Submission& submission);
  absl::Status WaitForPorts();
  // Configures a new agent: policies and port reservations.
  void ConfigureAgent(Host& host);
  void Receive(Host& host, const Message& message);
  void ReceiveTask(Host& host, const std::string& op, const cluster::TaskId& id,
                   const Message& message);
  void TakeLog(Host& host, const cluster::TaskId& id, Task& task, const Message& message);
  // Reports a held end if its output is complete.
  void ReportEnd(const Host& host, const cluster::TaskId& id, Task& task);
  // Reports the end of all tasks of a host whose agent was given up.
  void OnHostLost(Host& host, const std::string& why);
  void SendQueued(Host& host);
  void ReportWithdrawn();
  static Json LogsOf(const Host& host);
  static Json SamplesOf(const Host& host);

  const supervise::JobDir dir_;
  process::EventLoop& loop_;
  supervise::RunnerEvents& events_;
  job::Policies policies_;
  std::string job_id_;
  std::map<std::string, Host> hosts_;  // by name
  std::map<cluster::TaskId, Task> tasks_;
  std::optional<absl::Time> finish_by_;
};

}  // namespace muster::ssh
