// Runs one local job from its start to its end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "launch/job_dir.h"
#include "launch/lifecycle.h"
#include "launch/local/control.h"
#include "launch/local/stall_watch.h"
#include "launch/local/task_process.h"
#include "launch/log_writer.h"
#include "launch/ports.h"
#include "process/event_loop.h"

namespace muster::local {

// Carries out what Lifecycle decides: starts and ends processes, moves their output into logs,
// reports every change to the sink before anybody is told of it, answers the control socket. One
// thread; the process must be a subreaper and have no other children.
class Supervisor {
 public:
  // Reserves the ports and writes the first change; nothing is started yet.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(JobDir dir, EventSink& sink);
  ~Supervisor();

  // Until the job is over and nothing of it is left. The verdict is in the sink.
  absl::Status Run();

 private:
  // A task of the job through all its attempts.
  struct Slot {
    TaskLaunch launch;
    std::unique_ptr<LogWriter> log;
    std::unique_ptr<TaskProcess> process;  // null between attempts
    int64_t reported_loss = 0;             // of output, when the disk was full
    pid_t capture = 0;                     // gdb at work on its stacks
    absl::Time capture_until = absl::InfiniteFuture();
    ProgressFile progress;
    bool stall_reported = false;
  };

  Supervisor(JobDir dir, Submission submission, EventSink& sink);
  absl::Status Initialize();

  void CarryOutActions();
  void StartTask(const Lifecycle::Start& start);
  void EndTask(const Lifecycle::End& end);
  void MovePort(const TaskId& id);

  void OnSignal(int signal);
  void ReapChildren();
  void CheckOrphans();
  void FinishAttempts();
  AttemptEnd Explain(const TaskId& id, const Slot& slot);

  absl::Time NextWakeUp() const;
  void CheckReadiness();
  void CheckStalls();
  void CheckLogs();
  void AddEvent(std::string kind, std::string subject, std::string message);
  void FinishCapture(const TaskId& id, Slot& slot);

  nlohmann::json HandleRequest(const nlohmann::json& request);
  absl::Status Update(const nlohmann::json& request);

  void Publish();
  JobRecord JobRow() const;
  TaskRecord TaskRow(const TaskId& id, const Lifecycle::Task& task) const;

  const JobDir dir_;
  Submission submission_;
  EventSink& sink_;
  const Clock& clock_ = Clock::Real();
  const std::map<std::string, std::string> environment_;
  const std::string host_;

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ControlServer> control_;
  PortReservations ports_;
  ClusterSpec cluster_;
  std::unique_ptr<Lifecycle> lifecycle_;
  std::map<TaskId, Slot> slots_;
  std::map<pid_t, TaskId> pids_;                    // of main processes
  absl::Time orphans_at_ = absl::InfiniteFuture();  // when they are looked for again
  absl::Time orphans_until_ = absl::InfinitePast();
  std::optional<absl::Time> started_;
  std::optional<absl::Time> finished_;
  int64_t oom_kills_ = 0;
  ProcessIdentity identity_;

  StateChange pending_;  // not yet taken by the sink
  absl::Time refresh_at_;
  absl::Time publish_retry_at_ = absl::InfinitePast();
  JobState published_state_ = JobState::kPending;
};

// The body of `muster supervise`. Forks: the parent waits, and when the supervisor is killed it
// ends every process of the job; the child becomes the supervisor. `report_fd` receives "ok\n" or
// the reason why the job cannot start, then is closed. Returns an exit code.
int Supervise(const std::string& job_dir, int report_fd,
              const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink);

}  // namespace muster::local
