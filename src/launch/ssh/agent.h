// Runs the tasks of one job on a host, for a supervisor elsewhere.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "launch/job_dir.h"
#include "launch/local/processes.h"
#include "launch/log_reader.h"
#include "launch/ports.h"
#include "launch/ssh/keys.h"
#include "launch/ssh/wire.h"
#include "launch/unix_socket.h"

namespace muster::ssh {

// In the job's folder. An agent and its guard hold the lock from before it serves until all that it
// ran has ended.
inline constexpr char kAgentSocket[] = "agent.sock";
inline constexpr char kAgentLock[] = "agent.lock";

// The supervisor comes and goes by a socket in the job's folder; what it has not taken yet, news
// and output, is kept until it is back. When nobody asks for the job's `host_timeout`, everything
// is ended: the supervisor counts the tasks as lost then, and may start them elsewhere. One thread;
// the process must be a subreaper and have no other children.
class Agent final : public RunnerEvents {
 public:
  // Serves from now on. The caller has kAgentLock.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(const std::string& dir,
                                                       const std::string& job_id);
  ~Agent() override;

  // Until the supervisor says that the job is over: OK. An error when it is not heard of any more,
  // or wants another agent. What runs then is for the caller to end.
  absl::Status Run();

  void OnStarted(const TaskId& task, pid_t pid) override;
  void OnReady(const TaskId& task) override;
  void OnEnded(const TaskId& task, const AttemptEnd& end, absl::Time when) override;
  void OnStalled(const TaskId& task, const std::string& why) override;
  void OnNote(const std::string& kind, const std::string& subject,
              const std::string& message) override;

 private:
  // What the supervisor has of a task.
  struct Copy {
    std::unique_ptr<LogReader> log;
    LogPosition sent;                            // how far its log was
    absl::Time progress = absl::InfinitePast();  // of the file as it was last sent
    int attempt = -1;                            // that was last started
    bool runs = false;
    bool asked = false;             // to end
    bool forgotten = false;         // its process is, once it has ended
    std::optional<TaskStart> next;  // when what runs has been killed
  };

  Agent(JobDir dir, std::string job_id)
      : dir_(std::move(dir)), job_id_(std::move(job_id)), keys_(dir_.path()) {}
  void Accept(UniqueFd in);
  void Receive(const Json& head);
  void Hello(const Json& head);
  void SetHostTimeout(const Json& head);
  void Act(const std::string& op, const Json& head);
  void Start(const TaskStart& start);
  Copy& CopyOf(const TaskId& task);
  void ForgetEnded();
  void ReservePorts(const Json& head);
  void SendLogs();
  bool SendPiece(const TaskId& task, Copy& copy);  // false when all is sent
  void SendProgress();
  absl::Time NextWakeUp() const;

  const JobDir dir_;
  const std::string job_id_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<UnixListener> listener_;
  std::unique_ptr<Channel> channel_;
  bool greeted_ = false;  // on this channel: how far the supervisor has come is known
  Ledger ledger_;
  std::unique_ptr<local::Processes> processes_;
  PortReservations ports_;
  KeyLease keys_;
  std::map<TaskId, Copy> copies_;
  TaskId last_sent_;              // whose output went last
  std::string id_;                // of this process, among all agents of the job
  std::optional<int64_t> epoch_;  // how often the supervisor had given an agent up before
  absl::Duration host_timeout_ = absl::Minutes(1);
  absl::Time heard_;        // when anything last came
  absl::Time progress_at_;  // when progress is looked at again
  bool closing_ = false;
  absl::Status why_closing_;  // OK: the job is over
};

}  // namespace muster::ssh
