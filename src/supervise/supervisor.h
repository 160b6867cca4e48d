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
#include "process/event_loop.h"
#include "supervise/control.h"
#include "supervise/job_dir.h"
#include "supervise/lifecycle.h"
#include "supervise/runner.h"
#include "supervise/usage/sample_file.h"

namespace muster::supervise {

// Carries out the actions of Lifecycle, writes every change to the sink before it notifies
// watchers, and serves the control socket. Not thread-safe. REQUIRES: this process is a subreaper
// and has no other children.
class Supervisor final : public RunnerEvents {
 public:
  // Reserves the ports and writes the first change to `sink`, which must outlive the supervisor.
  // Starts no task. Returns Unavailable if the sink cannot store the change.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(JobDir dir, job::EventSink& sink,
                                                            const RunnerFactory& make_runner);
  ~Supervisor() override;

  // Returns when the job has ended and none of its processes is left. By then the sink has stored
  // the verdict, unless writing it failed for 30 s.
  absl::Status Run();

  void OnStarted(const cluster::TaskId& task, pid_t pid) override;
  void OnReady(const cluster::TaskId& task) override;
  void OnEnded(const cluster::TaskId& task, const AttemptEnd& end, absl::Time when) override;
  void OnStalled(const cluster::TaskId& task, const std::string& why) override;
  void OnSample(const cluster::TaskId& task, const Sample& sample) override;
  void OnNote(const std::string& kind, const std::string& subject,
              const std::string& message) override;

 private:
  // A task as last started.
  struct Slot {
    job::TaskLaunch launch;
    pid_t pid = 0;              // 0 between attempts
    absl::Status reachability;  // of its host
    std::unique_ptr<SampleFile> samples;
  };

  Supervisor(JobDir dir, job::Submission submission, job::EventSink& sink);
  absl::Status Initialize(const RunnerFactory& make_runner);
  absl::Status RunUntilDone();
  absl::Status FinishRunner();

  void CarryOutActions();
  void StartTask(const Lifecycle::Start& start);
  void MovePort(const cluster::TaskId& id);
  void CheckHosts();
  void OnSignal(int signal);
  absl::Time NextWakeUp() const;

  nlohmann::json HandleRequest(const nlohmann::json& request);
  absl::Status Update(const nlohmann::json& request);

  void Publish();
  job::JobRecord JobRow() const;
  job::TaskRecord TaskRow(const cluster::TaskId& id, const Lifecycle::Task& task) const;

  const JobDir dir_;
  job::Submission submission_;
  job::EventSink& sink_;
  const base::Clock& clock_ = base::Clock::Real();

  std::unique_ptr<process::EventLoop> loop_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<Runner> runner_;
  cluster::ClusterSpec cluster_;
  std::unique_ptr<Lifecycle> lifecycle_;
  std::map<cluster::TaskId, Slot> slots_;
  std::set<cluster::TaskId> touched_;  // tasks whose record changed outside Lifecycle
  std::optional<absl::Time> started_;
  std::optional<absl::Time> finished_;
  process::ProcessIdentity identity_;

  job::StateChange
      pending_;  // not yet stored by the sink; job.id is set while a write is to be retried
  absl::Time refresh_at_;
  absl::Time publish_retry_at_ = absl::InfinitePast();
  job::JobState known_state_ = job::JobState::kPending;  // state last stored by the sink
};

}  // namespace muster::supervise
