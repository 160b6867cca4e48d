#include "supervise/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cluster/address.h"
#include "job/failure.h"
#include "process/exit_status.h"

namespace muster::supervise {
namespace {

constexpr absl::Duration kRefreshInterval = absl::Minutes(1);
constexpr absl::Duration kPublishRetry = absl::Seconds(1);
// Limit of the retries to write the verdict at the end of a job.
constexpr absl::Duration kLastPublishTimeout = absl::Seconds(30);

}  // namespace

Supervisor::Supervisor(JobDir dir, job::Submission submission, job::EventSink& sink)
    : dir_(std::move(dir)), submission_(std::move(submission)), sink_(sink) {}

Supervisor::~Supervisor() = default;

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Create(JobDir dir, job::EventSink& sink,
                                                               const RunnerFactory& make_runner) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission, dir.LoadSubmission());
  std::unique_ptr<Supervisor> supervisor(
      new Supervisor(std::move(dir), std::move(submission), sink));
  if (absl::Status initialized = supervisor->Initialize(make_runner); !initialized.ok()) {
    if (supervisor->runner_ != nullptr) MUSTER_RETURN_IF_ERROR(supervisor->FinishRunner());
    return initialized;
  }
  return supervisor;
}

absl::Status Supervisor::Initialize(const RunnerFactory& make_runner) {
  MUSTER_ASSIGN_OR_RETURN(identity_, process::IdentifyProcess(::getpid()));
  MUSTER_ASSIGN_OR_RETURN(loop_, process::EventLoop::Create());
  MUSTER_RETURN_IF_ERROR(loop_->HandleSignals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE},
                                              [this](int signal) { OnSignal(signal); }));
  MUSTER_RETURN_IF_ERROR(dir_.ReserveSpace());
  MUSTER_ASSIGN_OR_RETURN(runner_, make_runner(dir_, submission_, *loop_, *this));
  runner_->SetPolicies(submission_.spec.policies);
  MUSTER_ASSIGN_OR_RETURN(cluster_, runner_->Assign(submission_, {}));
  MUSTER_ASSIGN_OR_RETURN(
      control_, ControlServer::Listen(dir_.path(), *loop_, [this](const nlohmann::json& request) {
        return HandleRequest(request);
      }));
  started_ = clock_.Now();
  refresh_at_ = *started_ + kRefreshInterval;
  lifecycle_ = std::make_unique<Lifecycle>(submission_.spec, *started_);
  for (const cluster::TaskId& id : submission_.spec.Tasks()) {
    MUSTER_ASSIGN_OR_RETURN(slots_[id].launch, runner_->LaunchOf(submission_, cluster_, id, 0, 0));
  }
  Publish();
  if (!pending_.job.id.empty())
    return absl::UnavailableError("the job's history cannot be written");
  return absl::OkStatus();
}

absl::Status Supervisor::Run() {
  MUSTER_RETURN_IF_ERROR(RunUntilDone());
  MUSTER_RETURN_IF_ERROR(FinishRunner());
  dir_.ReleaseSpace();  // makes room for the verdict on a full disk
  const absl::Time give_up = clock_.Now() + kLastPublishTimeout;
  while (!pending_.job.id.empty() && clock_.Now() < give_up) {
    MUSTER_RETURN_IF_ERROR(loop_->Wait(publish_retry_at_ - clock_.Now()));
    Publish();
  }
  control_.reset();  // watchers see end of file only after the verdict is written
  return absl::OkStatus();
}

absl::Status Supervisor::FinishRunner() {
  while (!runner_->Finish()) {
    MUSTER_RETURN_IF_ERROR(loop_->Wait(runner_->next_timer() - clock_.Now()));
    runner_->Advance();
  }
  return absl::OkStatus();
}

absl::Status Supervisor::RunUntilDone() {
  for (;;) {
    // Every change is published before the loop serves the next request.
    CarryOutActions();
    CheckHosts();
    Publish();
    if (lifecycle_->done()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(loop_->Wait(NextWakeUp() - clock_.Now()));
    runner_->Advance();
    lifecycle_->Advance(clock_.Now());
    if (refresh_at_ <= clock_.Now()) {
      refresh_at_ = clock_.Now() + kRefreshInterval;
      sink_.Refresh().IgnoreError();  // the next change retries and reports the error
    }
  }
}

absl::Time Supervisor::NextWakeUp() const {
  absl::Time next = std::min({lifecycle_->next_timer(), refresh_at_, runner_->next_timer()});
  if (!pending_.job.id.empty()) next = std::min(next, publish_retry_at_);
  return next;
}

void Supervisor::CarryOutActions() {
  // A start can fail immediately and lead to further actions.
  for (auto actions = lifecycle_->TakeActions(); !actions.empty();
       actions = lifecycle_->TakeActions()) {
    for (const Lifecycle::Action& action : actions) {
      if (const auto* start = std::get_if<Lifecycle::Start>(&action)) StartTask(*start);
      if (const auto* end = std::get_if<Lifecycle::End>(&action)) {
        runner_->End(end->task, end->kill);
      }
      if (const auto* move = std::get_if<Lifecycle::MovePort>(&action)) MovePort(move->task);
    }
  }
  // Tasks that an update has removed leave Lifecycle once they have ended.
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (lifecycle_->tasks().contains(slot->first)) {
      ++slot;
      continue;
    }
    pending_.removed.push_back(slot->first);
    runner_->Forget(slot->first);
    slot = slots_.erase(slot);
  }
}

void Supervisor::StartTask(const Lifecycle::Start& start) {
  const auto found = lifecycle_->tasks().find(start.task);
  if (found == lifecycle_->tasks().end()) return;
  const Lifecycle::Task& task = found->second;
  // A stop or an update since the action was issued voids it.
  if (task.state != job::TaskState::kPending || task.attempt != start.attempt) return;
  Slot& slot = slots_[start.task];
  if (start.attempt > 0 || slot.launch.argv.empty()) {  // Initialize() builds the first
    auto launch =
        runner_->LaunchOf(submission_, cluster_, start.task, start.attempt, task.restarts);
    if (!launch.ok()) {
      const AttemptEnd end{.reason = std::string(launch.status().message()), .may_retry = false};
      return lifecycle_->OnEnded(start.task, end, clock_.Now());
    }
    slot.launch = *std::move(launch);
  }
  const job::RoleSpec* role = submission_.spec.FindRole(start.task.role);
  lifecycle_->OnSent(start.task);
  runner_->Start({.task = start.task,
                  .attempt = start.attempt,
                  .launch = slot.launch,
                  .port = cluster::PortOf(cluster_.AddressOf(start.task)),
                  .port_is_picked = runner_->IsPicked(submission_.spec, start.task),
                  .waits_for_port = role != nullptr && role->ready == job::Readiness::kListening});
}

void Supervisor::MovePort(const cluster::TaskId& id) {
  const auto address = runner_->AnotherAddress(id, cluster_.AddressOf(id));
  // Without a replacement the task restarts on the old port, and fails again if it is still taken.
  if (address.has_value()) cluster_.Set(id, *address);
}

void Supervisor::OnStarted(const cluster::TaskId& task, pid_t pid) {
  const auto found = lifecycle_->tasks().find(task);
  if (found == lifecycle_->tasks().end() || found->second.state != job::TaskState::kPending) {
    return runner_->End(task, /*kill=*/true);  // stopped or removed meanwhile
  }
  slots_[task].pid = pid;
  lifecycle_->OnStarted(task, clock_.Now());
}

void Supervisor::OnReady(const cluster::TaskId& task) {
  if (lifecycle_->tasks().contains(task)) lifecycle_->OnReady(task, clock_.Now());
}

void Supervisor::OnEnded(const cluster::TaskId& task, const AttemptEnd& end, absl::Time when) {
  if (!lifecycle_->tasks().contains(task)) return;
  slots_[task].pid = 0;
  AttemptEnd dated = end;
  dated.time = when;  // the report may be late; timers that follow from it start now
  lifecycle_->OnEnded(task, dated, clock_.Now());
}

void Supervisor::OnStalled(const cluster::TaskId& task, const std::string& why) {
  if (lifecycle_->tasks().contains(task) && !lifecycle_->ending()) {
    lifecycle_->OnStalled(task, why, clock_.Now());
  }
}

void Supervisor::OnSample(const cluster::TaskId& task, const Sample& sample) {
  const auto slot = slots_.find(task);
  if (slot == slots_.end()) return;
  std::unique_ptr<SampleFile>& file = slot->second.samples;
  if (file == nullptr) file = std::make_unique<SampleFile>(dir_.samples(task));
  // A disk that is full costs samples, not the job.
  file->Append(sample).IgnoreError();
}

void Supervisor::OnNote(const std::string& kind, const std::string& subject,
                        const std::string& message) {
  pending_.events.push_back(
      {.time = clock_.Now(), .kind = kind, .subject = subject, .message = message});
}

// Updates tasks whose host has become unreachable or reachable.
void Supervisor::CheckHosts() {
  for (auto& [id, slot] : slots_) {
    absl::Status reachability = runner_->Reachability(id);
    if (reachability == slot.reachability) continue;
    if (reachability.ok() != slot.reachability.ok() && lifecycle_->tasks().contains(id)) {
      lifecycle_->SetUnreachable(id, !reachability.ok(), clock_.Now());
    }
    slot.reachability = std::move(reachability);
    touched_.insert(id);
  }
}

void Supervisor::OnSignal(int signal) {
  switch (signal) {
    case SIGCHLD:
      if (runner_ != nullptr) runner_->OnChildren();
      break;
    case SIGTERM:
    case SIGINT:
      if (lifecycle_ == nullptr) ::_exit(1);  // no task runs yet
      lifecycle_->RequestStop(absl::StrCat("its supervisor received ", process::SignalName(signal)),
                              /*immediately=*/false, clock_.Now());
      break;
    default:  // SIGHUP and SIGPIPE are handled in order to be ignored
      break;
  }
}

nlohmann::json Supervisor::HandleRequest(const nlohmann::json& request) {
  const std::string op = request["op"];
  if (op == "stop") {
    const bool immediately = request.contains("immediately") && request["immediately"] == true;
    lifecycle_->RequestStop("stopped by the user", immediately, clock_.Now());
    return {{"ok", true}};
  }
  if (op == "update") {
    const absl::Status status = Update(request);
    if (!status.ok()) return {{"error", std::string(status.message())}};
    return {{"ok", true}};
  }
  return {{"error", absl::StrCat("unknown request '", op, "'")}};
}

absl::Status Supervisor::Update(const nlohmann::json& request) {
  if (!request.contains("submission")) return absl::InvalidArgumentError("no submission");
  MUSTER_ASSIGN_OR_RETURN(job::Submission next, job::SubmissionFromJson(request["submission"]));
  next.id = submission_.id;
  next.created = submission_.created;
  next.resumed_from = submission_.resumed_from;
  next.resume_step = submission_.resume_step;
  // All steps that can fail precede lifecycle_->Update(), which succeeds if MayUpdate() does.
  MUSTER_RETURN_IF_ERROR(lifecycle_->MayUpdate());
  MUSTER_ASSIGN_OR_RETURN(const UpdatePlan plan, runner_->PlanUpdate(submission_, cluster_, next));
  MUSTER_ASSIGN_OR_RETURN(cluster::ClusterSpec cluster, runner_->Assign(next, cluster_));
  if (const absl::Status saved = dir_.SaveSubmission(next); !saved.ok()) {
    runner_->Release(cluster, cluster_);
    return saved;
  }
  MUSTER_RETURN_IF_ERROR(lifecycle_->Update(next.spec, plan, clock_.Now()));
  runner_->Release(cluster_, cluster);
  runner_->SetPolicies(next.spec.policies);
  submission_ = std::move(next);
  cluster_ = std::move(cluster);
  return absl::OkStatus();
}

job::JobRecord Supervisor::JobRow() const {
  job::JobRecord job{
      .id = submission_.id,
      .name = submission_.spec.name,
      .platform = std::string(runner_->platform()),
      .state = lifecycle_->state(),
      .reason = lifecycle_->reason(),
      .created = submission_.created,
      .started = started_,
      .finished = finished_,
      .directory = dir_.path(),
      .model_dir = submission_.spec.model_dir,
      .resumed_from = submission_.resumed_from,
      .tasks = static_cast<int>(lifecycle_->tasks().size()),
  };
  job.supervisor = identity_;
  for (const auto& [id, slot] : slots_) {
    const auto task = lifecycle_->tasks().find(id);
    const bool over = task == lifecycle_->tasks().end() || job::IsFinal(task->second.state);
    if (slot.reachability.ok() || over || job::IsFinal(job.state)) continue;
    job.state = job::JobState::kUnreachable;
    const std::string host = runner_->HostOf(id);
    job.reason =
        absl::StrCat(host, " does not respond: ",
                     absl::StripPrefix(slot.reachability.message(), absl::StrCat(host, ": ")));
    break;
  }
  if (lifecycle_->failure().has_value()) job.failure = job::FailureToJson(*lifecycle_->failure());
  return job;
}

job::TaskRecord Supervisor::TaskRow(const cluster::TaskId& id, const Lifecycle::Task& task) const {
  const Slot& slot = slots_.at(id);
  job::TaskRecord row{
      .id = id,
      .state = task.state,
      .attempt = std::max(task.attempt, 0),
      .restarts = task.restarts,
      .host = runner_->HostOf(id),
      .address = std::string(cluster_.AddressOf(id)),
      .pid = slot.pid,
      .command = base::ShellJoin(slot.launch.argv),
      .started = task.started,
      .finished = task.finished,
      .exit_code = task.exit_code,
      .reason = task.reason,
  };
  if (!slot.reachability.ok() && !job::IsFinal(task.state)) {
    row.reason = absl::StrCat(row.host, kHostUnreachable);
  }
  return row;
}

void Supervisor::Publish() {
  std::set<cluster::TaskId> changed = lifecycle_->TakeChanged();
  changed.merge(std::exchange(touched_, {}));
  std::vector<job::Event> events = lifecycle_->TakeEvents();
  std::move(events.begin(), events.end(), std::back_inserter(pending_.events));
  const bool retry = !pending_.job.id.empty();  // the last Apply() failed
  const bool news = !changed.empty() || !pending_.events.empty() || !pending_.removed.empty() ||
                    lifecycle_->state() != known_state_;
  if (!news && !retry) return;
  if (lifecycle_->done() && !finished_.has_value()) finished_ = clock_.Now();
  // A newer record of a task replaces one that the sink has not stored yet.
  std::erase_if(pending_.tasks,
                [&](const job::TaskRecord& row) { return changed.contains(row.id); });
  for (const cluster::TaskId& id : changed) {
    const auto task = lifecycle_->tasks().find(id);
    if (task != lifecycle_->tasks().end()) pending_.tasks.push_back(TaskRow(id, task->second));
  }
  pending_.job = JobRow();
  if (retry && clock_.Now() < publish_retry_at_) return;
  const absl::Status status = sink_.Apply(pending_);
  if (!status.ok()) {
    std::fprintf(stderr, "%s: cannot write the history: %s\n",
                 base::FormatLocalTime(clock_.Now()).c_str(),
                 std::string(status.message()).c_str());
    publish_retry_at_ = clock_.Now() + kPublishRetry;
    return;
  }
  known_state_ = lifecycle_->state();
  pending_ = {};
  if (control_ != nullptr) control_->NotifyWatchers();
}

}  // namespace muster::supervise
