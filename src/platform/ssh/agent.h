// Runs the tasks of one job on a host, under the control of a supervisor on another machine.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/ssh/keys.h"
#include "platform/ssh/wire.h"
#include "process/unix_socket.h"
#include "supervise/job_dir.h"
#include "supervise/log/log_reader.h"
#include "supervise/ports.h"
#include "supervise/processes.h"

namespace muster::ssh {

// Names of files in the job's folder. The agent and its guard hold the lock from before the agent
// serves until all of its processes have ended.
inline constexpr char kAgentSocket[] = "agent.sock";
inline constexpr char kAgentLock[] = "agent.lock";

// Serves the supervisor over a Unix socket in the job's folder. The supervisor may disconnect and
// reconnect; the agent keeps events and output until they are acknowledged. After `host_timeout`
// without a message other than `hello` the agent ends all tasks: soon after, the supervisor counts
// them as lost and may start them elsewhere.
//
// Single-threaded. REQUIRES: the process is a subreaper and has no other children.
class Agent final : public supervise::RunnerEvents {
 public:
  // Starts to serve. REQUIRES: the caller holds kAgentLock.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(const std::string& dir,
                                                       const std::string& job_id);
  ~Agent() override;

  // Runs until the supervisor closes the job, then returns OK. Returns DeadlineExceeded if the
  // supervisor is silent for `host_timeout`, Aborted if the supervisor has given this agent up or
  // another run replaces this one, or Cancelled on SIGTERM. The caller ends the processes that
  // still run.
  absl::Status Run();

  void OnStarted(const cluster::TaskId& task, pid_t pid) override;
  void OnReady(const cluster::TaskId& task) override;
  void OnEnded(const cluster::TaskId& task, const supervise::AttemptEnd& end,
               absl::Time when) override;
  void OnStalled(const cluster::TaskId& task, const std::string& why) override;
  void OnSample(const cluster::TaskId& task, const supervise::Sample& sample) override;
  void OnNote(const std::string& kind, const std::string& subject,
              const std::string& message) override;

 private:
  // State of a task, and how much of it has been sent to the supervisor.
  struct TaskCopy {
    std::unique_ptr<supervise::LogReader> log;
    supervise::LogPosition sent;                 // position in the log up to which output was sent
    absl::Time progress = absl::InfinitePast();  // modification time of the progress file last sent
    int attempt = -1;                            // started last
    bool runs = false;
    std::deque<supervise::Sample> samples;           // the last ones, sent or not
    absl::Time samples_sent = absl::InfinitePast();  // time of the last one sent
    bool end_requested = false;                      // the supervisor requested its end
    bool forgotten = false;                          // drop its process once it has ended
    std::optional<supervise::TaskStart> next;  // starts once the running attempt has been killed
  };

  Agent(supervise::JobDir dir, std::string job_id)
      : dir_(std::move(dir)), job_id_(std::move(job_id)), keys_(dir_.path()) {}
  void Accept(base::UniqueFd in);
  void Receive(const Json& head);
  void Hello(const Json& head, absl::Time now);
  void SetHostTimeout(const Json& head);
  // Executes a numbered message, exactly once.
  void Act(const std::string& op, const Json& head);
  void Start(const supervise::TaskStart& start);
  TaskCopy& CopyOf(const cluster::TaskId& task);
  void ForgetEnded();
  void ReservePorts(const Json& head);
  void SendLogs();
  // Sends the next piece of the log. Returns false if all of it was sent.
  bool SendPiece(const cluster::TaskId& task, TaskCopy& copy);
  void SendProgress();
  // Sends the samples that were not sent yet.
  void SendSamples();
  absl::Time NextWakeUp() const;

  const supervise::JobDir dir_;
  const std::string job_id_;
  std::unique_ptr<process::EventLoop> loop_;
  std::unique_ptr<process::UnixListener> listener_;
  std::unique_ptr<Channel> channel_;
  bool hello_received_ =
      false;  // hello received on channel_: the log positions of the supervisor are set
  ReliableOutbox outbox_;
  std::unique_ptr<supervise::Processes> processes_;
  supervise::PortReservations ports_;
  KeyLease keys_;
  std::map<cluster::TaskId, TaskCopy> copies_;
  cluster::TaskId last_sent_;     // task whose output was sent last
  std::string id_;                // identifies this process among all agents of the job
  std::optional<int64_t> epoch_;  // number of agents that the supervisor had given up before
  absl::Duration host_timeout_ = absl::Minutes(1);
  absl::Time last_received_;  // time of the last message received except hello
  absl::Time progress_at_;    // next check of the progress files
  bool closing_ = false;
  absl::Status why_closing_;  // OK: the job is closed
};

}  // namespace muster::ssh
