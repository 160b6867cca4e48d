// Runs one job from its start to its end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "launch/control.h"
#include "launch/job_dir.h"
#include "launch/lifecycle.h"
#include "launch/runner.h"
#include "process/event_loop.h"

namespace muster {

// Who runs the tasks of a job.
using RunnerFactory = std::function<absl::StatusOr<std::unique_ptr<Runner>>(
    const JobDir& dir, const Submission& submission, EventLoop& loop, RunnerEvents& events)>;

// Has carried out what Lifecycle decides, reports every change to the sink before anybody is told
// of it, answers the control socket. One thread; the process must be a subreaper and have no other
// children.
class Supervisor final : public RunnerEvents {
 public:
  // Reserves the ports and writes the first change; nothing is started yet.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(JobDir dir, EventSink& sink,
                                                            const RunnerFactory& make_runner);
  ~Supervisor() override;

  // Until the job is over and nothing of it is left. The verdict is in the sink.
  absl::Status Run();

  void OnStarted(const TaskId& task, pid_t pid) override;
  void OnReady(const TaskId& task) override;
  void OnEnded(const TaskId& task, const AttemptEnd& end, absl::Time when) override;
  void OnStalled(const TaskId& task, const std::string& why) override;
  void OnNote(const std::string& kind, const std::string& subject,
              const std::string& message) override;

 private:
  // A task as it was last started.
  struct Slot {
    TaskLaunch launch;
    pid_t pid = 0;              // 0 between attempts
    absl::Status reachability;  // of its host
  };

  Supervisor(JobDir dir, Submission submission, EventSink& sink);
  absl::Status Initialize(const RunnerFactory& make_runner);
  absl::Status RunToTheEnd();
  absl::Status FinishRunner();

  void CarryOutActions();
  void StartTask(const Lifecycle::Start& start);
  void MovePort(const TaskId& id);
  void CheckHosts();
  void OnSignal(int signal);
  absl::Time NextWakeUp() const;

  nlohmann::json HandleRequest(const nlohmann::json& request);
  absl::Status Update(const nlohmann::json& request);

  void Publish();
  JobRecord JobRow() const;
  TaskRecord TaskRow(const TaskId& id, const Lifecycle::Task& task) const;

  const JobDir dir_;
  Submission submission_;
  EventSink& sink_;
  const Clock& clock_ = Clock::Real();

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<Runner> runner_;
  ClusterSpec cluster_;
  std::unique_ptr<Lifecycle> lifecycle_;
  std::map<TaskId, Slot> slots_;
  std::set<TaskId> touched_;  // their rows changed, though not for Lifecycle
  std::optional<absl::Time> started_;
  std::optional<absl::Time> finished_;
  ProcessIdentity identity_;

  StateChange pending_;  // not yet taken by the sink
  absl::Time refresh_at_;
  absl::Time publish_retry_at_ = absl::InfinitePast();
  JobState known_state_ = JobState::kPending;  // Lifecycle's, as it was last taken
};

}  // namespace muster
