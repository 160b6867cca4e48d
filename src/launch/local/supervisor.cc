#include "launch/local/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "job/failure.h"
#include "launch/exit_cause.h"
#include "launch/local/addresses.h"
#include "launch/local/stall_watch.h"
#include "launch/local/update.h"
#include "launch/log_reader.h"
#include "process/spawn.h"
#include "process/tree.h"

namespace muster::local {
namespace {

constexpr int kReportedLines = 20;
constexpr absl::Duration kReadinessInterval = absl::Milliseconds(50);
constexpr absl::Duration kOrphanInterval = absl::Milliseconds(20);
constexpr absl::Duration kOrphanPatience = absl::Seconds(2);
constexpr absl::Duration kRefreshInterval = absl::Minutes(1);
constexpr absl::Duration kPublishRetry = absl::Seconds(1);
// At its end a job insists this long on a history that does not take its verdict.
constexpr absl::Duration kLastPublishPatience = absl::Seconds(30);

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  return name;
}

// Each task costs a pipe, a log, an index and a port: more than the usual soft limit of 1024
// allows.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Gives back the ports of `left` that `kept` does not have.
void ReleasePorts(PortReservations& ports, const ClusterSpec& left, const ClusterSpec& kept) {
  const std::set<int> needed = PortsOf(kept);
  for (const int port : PortsOf(left)) {
    if (!needed.contains(port)) ports.Release(port);
  }
}

absl::Duration StallCheckInterval(const StallPolicy& stall) {
  return std::clamp(stall.timeout / 4, absl::Milliseconds(50), absl::Seconds(5));
}

}  // namespace

Supervisor::Supervisor(JobDir dir, Submission submission, EventSink& sink)
    : dir_(std::move(dir)),
      submission_(std::move(submission)),
      sink_(sink),
      environment_(CurrentEnvironment()),
      host_(HostName()) {}

Supervisor::~Supervisor() = default;

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Create(JobDir dir, EventSink& sink) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, dir.LoadSubmission());
  std::unique_ptr<Supervisor> supervisor(
      new Supervisor(std::move(dir), std::move(submission), sink));
  MUSTER_RETURN_IF_ERROR(supervisor->Initialize());
  return supervisor;
}

absl::Status Supervisor::Initialize() {
  RaiseFileLimit();
  oom_kills_ = OomKillCount();
  MUSTER_ASSIGN_OR_RETURN(identity_, IdentifyProcess(::getpid()));
  MUSTER_ASSIGN_OR_RETURN(loop_, EventLoop::Create());
  MUSTER_RETURN_IF_ERROR(loop_->HandleSignals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE},
                                              [this](int signal) { OnSignal(signal); }));
  MUSTER_RETURN_IF_ERROR(dir_.ReserveSpace());
  MUSTER_ASSIGN_OR_RETURN(cluster_, AssignAddresses(submission_.spec, {}, ports_));
  MUSTER_ASSIGN_OR_RETURN(
      control_, ControlServer::Listen(dir_.path(), *loop_, [this](const nlohmann::json& request) {
        return HandleRequest(request);
      }));
  started_ = clock_.Now();
  refresh_at_ = *started_ + kRefreshInterval;
  lifecycle_ = std::make_unique<Lifecycle>(submission_.spec, *started_);
  for (const TaskId& id : submission_.spec.Tasks()) {
    MUSTER_ASSIGN_OR_RETURN(slots_[id].launch, LaunchOf(dir_, submission_, cluster_, id, 0, 0));
  }
  Publish();
  if (!pending_.job.id.empty())
    return absl::UnavailableError("the job's history cannot be written");
  return absl::OkStatus();
}

absl::Status Supervisor::Run() {
  for (;;) {
    CarryOutActions();
    Publish();
    if (lifecycle_->done()) break;
    MUSTER_RETURN_IF_ERROR(loop_->Wait(NextWakeUp() - clock_.Now()));
    if (orphans_at_ <= clock_.Now()) CheckOrphans();
    FinishAttempts();
    CheckReadiness();
    CheckStalls();
    CheckLogs();
    lifecycle_->Advance(clock_.Now());
    if (refresh_at_ <= clock_.Now()) {
      refresh_at_ = clock_.Now() + kRefreshInterval;
      sink_.Refresh().IgnoreError();  // the next change tries again, and says so
    }
  }
  for (const pid_t pid : KillAllDescendants()) {
    AddEvent("job", "",
             absl::StrCat("process ", pid, " could not be ended: it is another user's, or stuck"));
  }
  dir_.ReleaseSpace();  // on a full disk, this is the room for the verdict
  const absl::Time give_up = clock_.Now() + kLastPublishPatience;
  while (!pending_.job.id.empty() && clock_.Now() < give_up) {
    MUSTER_RETURN_IF_ERROR(loop_->Wait(publish_retry_at_ - clock_.Now()));
    Publish();
  }
  control_.reset();  // watchers see the end of file after the verdict was written
  return absl::OkStatus();
}

void Supervisor::CarryOutActions() {
  // Starting a task can fail at once, and so lead to further actions.
  for (auto actions = lifecycle_->TakeActions(); !actions.empty();
       actions = lifecycle_->TakeActions()) {
    for (const Lifecycle::Action& action : actions) {
      if (const auto* start = std::get_if<Lifecycle::Start>(&action)) StartTask(*start);
      if (const auto* end = std::get_if<Lifecycle::End>(&action)) EndTask(*end);
      if (const auto* move = std::get_if<Lifecycle::MovePort>(&action)) MovePort(move->task);
    }
  }
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (lifecycle_->tasks().contains(slot->first)) {
      ++slot;
      continue;
    }
    pending_.removed.push_back(slot->first);
    slot = slots_.erase(slot);
  }
}

void Supervisor::StartTask(const Lifecycle::Start& start) {
  const auto found = lifecycle_->tasks().find(start.task);
  if (found == lifecycle_->tasks().end()) return;
  const Lifecycle::Task& task = found->second;
  if (task.state != TaskState::kPending || task.attempt != start.attempt) return;
  Slot& slot = slots_[start.task];
  const auto started = [&]() -> absl::Status {
    if (start.attempt > 0 || slot.launch.argv.empty()) {  // the first is made in advance
      MUSTER_ASSIGN_OR_RETURN(slot.launch, LaunchOf(dir_, submission_, cluster_, start.task,
                                                    start.attempt, task.restarts));
    }
    const std::string run_dir = dir_.run_dir(start.task);
    MUSTER_RETURN_IF_ERROR(MakeDirectories(run_dir));
    ::unlink(JoinPath(run_dir, "error.json").c_str());
    ::unlink(dir_.progress(start.task).c_str());
    if (slot.log == nullptr) {
      const Policies& policies = submission_.spec.policies;
      MUSTER_ASSIGN_OR_RETURN(slot.log, LogWriter::Open(dir_.logs(), start.task,
                                                        {.rotate_bytes = policies.log_rotate_bytes,
                                                         .keep = policies.log_keep}));
    }
    slot.log->BeginAttempt(start.attempt);
    slot.stall_reported = false;
    MUSTER_ASSIGN_OR_RETURN(slot.process,
                            TaskProcess::Start(slot.launch, environment_, *slot.log, *loop_));
    return absl::OkStatus();
  }();
  const absl::Time now = clock_.Now();
  if (!started.ok()) {
    lifecycle_->OnEnded(start.task, ExplainSpawnFailure(started, start.task.role), now);
    return;
  }
  pids_[slot.process->pid()] = start.task;
  lifecycle_->OnStarted(start.task, now);
}

void Supervisor::EndTask(const Lifecycle::End& end) {
  const auto slot = slots_.find(end.task);
  if (slot == slots_.end() || slot->second.process == nullptr) return;
  if (end.kill) {
    slot->second.process->KillTree();
  } else {
    slot->second.process->Terminate();
  }
}

void Supervisor::MovePort(const TaskId& id) {
  auto port = ports_.Reserve();
  if (!port.ok()) return;  // it starts again with the old one, and says so when that fails too
  ports_.Release(PortOf(cluster_.AddressOf(id)));
  cluster_.Set(id, absl::StrCat("127.0.0.1:", *port));
}

void Supervisor::OnSignal(int signal) {
  switch (signal) {
    case SIGCHLD:
      ReapChildren();
      break;
    case SIGTERM:
    case SIGINT:
      lifecycle_->RequestStop(absl::StrCat("its supervisor received ", SignalName(signal)),
                              /*at_once=*/false, clock_.Now());
      break;
    default:
      break;
  }
}

void Supervisor::ReapChildren() {
  for (;;) {
    // Looked at before it is reaped: while it is a zombie its pid, and so its group, cannot be
    // anybody else's.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    const pid_t pid = info.si_pid;
    int status = 0;
    const auto main = pids_.find(pid);
    if (main != pids_.end()) ::kill(-pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    if (main != pids_.end()) {
      slots_.at(main->second).process->OnExit(ExitStatus::FromWait(status), clock_.Now());
      pids_.erase(main);
      orphans_until_ = clock_.Now() + kOrphanPatience;
      continue;
    }
    for (auto& [id, slot] : slots_) {
      if (slot.capture == pid) FinishCapture(id, slot);
    }
  }
  CheckOrphans();
}

// An orphan cannot be told while it is between fork and exec, and may have forked meanwhile when it
// is killed: so they are looked for until none is left, for a while after the end of an attempt.
void Supervisor::CheckOrphans() {
  const bool remain = KillOrphans(
      submission_.id, [this](pid_t pid) { return pids_.contains(pid); },
      [this](const AttemptMark& mark) {
        return std::any_of(pids_.begin(), pids_.end(), [&](const auto& main) {
          return slots_.at(main.second).process->mark() == mark;
        });
      });
  const absl::Time now = clock_.Now();
  orphans_at_ = remain && now < orphans_until_ ? now + kOrphanInterval : absl::InfiniteFuture();
}

AttemptEnd Supervisor::Explain(const TaskId& id, const Slot& slot) {
  const ExitStatus& status = *slot.process->exit_status();
  ExitEvidence evidence;
  if (!status.ok()) {
    evidence.last_lines = LastLines(dir_.logs(), id, kReportedLines);
    evidence.error_file = ReadFile(JoinPath(dir_.run_dir(id), "error.json"), 1 << 20).value_or("");
    evidence.runs_shell = slot.launch.argv[0] == "/bin/sh";
    evidence.port = PortOf(cluster_.AddressOf(id));
    // An update may have taken the task, or its whole role, out of the job.
    evidence.port_is_ours =
        cluster_.Contains(id) && IsPicked(submission_.spec, id) && IsPortInUse(evidence.port);
  }
  if (status.signal() == SIGKILL) {
    const int64_t kills = OomKillCount();
    evidence.oom_killed = kills > oom_kills_;
    oom_kills_ = kills;
  }
  return ExplainExit(status, evidence);
}

void Supervisor::FinishAttempts() {
  const absl::Time now = clock_.Now();
  for (auto& [id, slot] : slots_) {
    if (slot.process == nullptr || !slot.process->Finished(now)) continue;
    const AttemptEnd end = Explain(id, slot);
    slot.process.reset();
    slot.capture = 0;
    slot.capture_until = absl::InfiniteFuture();
    lifecycle_->OnEnded(id, end, now);
  }
}

absl::Time Supervisor::NextWakeUp() const {
  const absl::Time now = clock_.Now();
  absl::Time next = std::min({lifecycle_->next_timer(), refresh_at_, orphans_at_});
  bool waits_for_port = false;
  for (const auto& [id, slot] : slots_) {
    if (slot.process != nullptr) next = std::min(next, slot.process->give_up_at());
    next = std::min(next, slot.capture_until);
    waits_for_port |= lifecycle_->tasks().at(id).state == TaskState::kStarting;
  }
  if (waits_for_port) next = std::min(next, now + kReadinessInterval);
  const auto& stall = submission_.spec.policies.stall;
  if (stall.has_value()) next = std::min(next, now + StallCheckInterval(*stall));
  if (!pending_.job.id.empty()) next = std::min(next, publish_retry_at_);
  return next;
}

void Supervisor::CheckReadiness() {
  std::vector<TaskId> ready;
  for (const auto& [id, task] : lifecycle_->tasks()) {
    if (task.state == TaskState::kStarting) ready.push_back(id);
  }
  if (ready.empty()) return;
  const std::set<int> ports = ListeningPorts();
  std::erase_if(ready,
                [&](const TaskId& id) { return !ports.contains(PortOf(cluster_.AddressOf(id))); });
  for (const TaskId& id : ready) lifecycle_->OnReady(id, clock_.Now());
}

void Supervisor::CheckLogs() {
  for (auto& [id, slot] : slots_) {
    if (slot.log == nullptr || slot.log->lost_bytes() == slot.reported_loss) continue;
    const bool first = slot.reported_loss == 0;
    slot.reported_loss = slot.log->lost_bytes();
    if (!first) continue;
    AddEvent("log", id.ToString(),
             absl::StrCat("output is lost, the task goes on: ", slot.log->status().message()));
  }
}

void Supervisor::AddEvent(std::string kind, std::string subject, std::string message) {
  pending_.events.push_back({.time = clock_.Now(),
                             .kind = std::move(kind),
                             .subject = std::move(subject),
                             .message = std::move(message)});
}

void Supervisor::CheckStalls() {
  const auto& stall = submission_.spec.policies.stall;
  const absl::Time now = clock_.Now();
  for (auto& [id, slot] : slots_) {
    if (slot.process == nullptr || slot.process->exit_status().has_value()) continue;
    if (slot.capture != 0) {
      if (now < slot.capture_until) continue;
      ::kill(-slot.capture, SIGKILL);
      FinishCapture(id, slot);
      continue;
    }
    if (!stall.has_value() || lifecycle_->ending()) continue;
    const Lifecycle::Task& task = lifecycle_->tasks().at(id);
    const absl::Time touched = slot.progress.LastChange(dir_.progress(id), now);
    const absl::Time last =
        std::max({task.started.value_or(now), slot.log->last_output(), touched});
    if (now - last < stall->timeout) {
      slot.stall_reported = false;
      continue;
    }
    if (slot.stall_reported) continue;
    slot.stall_reported = true;
    const auto capture = CaptureStacks(slot.process->pid(), dir_.stacks(id, task.attempt));
    slot.capture = capture.value_or(0);
    slot.capture_until = now + kCaptureTimeout;
    if (slot.capture == 0) FinishCapture(id, slot);
  }
}

void Supervisor::FinishCapture(const TaskId& id, Slot& slot) {
  slot.capture = 0;
  slot.capture_until = absl::InfiniteFuture();
  if (slot.process == nullptr || slot.process->exit_status().has_value()) return;
  if (!submission_.spec.policies.stall.has_value()) return;  // changed meanwhile
  const Lifecycle::Task& task = lifecycle_->tasks().at(id);
  lifecycle_->OnStalled(id,
                        absl::StrCat("stalled: no output and no step for ",
                                     DurationToString(submission_.spec.policies.stall->timeout),
                                     "; stacks in ", dir_.stacks(id, task.attempt)),
                        clock_.Now());
}

nlohmann::json Supervisor::HandleRequest(const nlohmann::json& request) {
  const std::string op = request["op"];
  if (op == "stop") {
    const bool at_once = request.contains("at_once") && request["at_once"] == true;
    lifecycle_->RequestStop("stopped by the user", at_once, clock_.Now());
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
  MUSTER_ASSIGN_OR_RETURN(Submission next, SubmissionFromJson(request["submission"]));
  next.id = submission_.id;
  next.created = submission_.created;
  next.resumed_from = submission_.resumed_from;
  next.resume_step = submission_.resume_step;
  MUSTER_RETURN_IF_ERROR(lifecycle_->MayUpdate());
  MUSTER_ASSIGN_OR_RETURN(const UpdatePlan plan, PlanUpdate(dir_, submission_, cluster_, next));
  MUSTER_ASSIGN_OR_RETURN(ClusterSpec cluster, AssignAddresses(next.spec, cluster_, ports_));
  if (const absl::Status saved = dir_.SaveSubmission(next); !saved.ok()) {
    ReleasePorts(ports_, cluster, cluster_);
    return saved;
  }
  MUSTER_RETURN_IF_ERROR(lifecycle_->Update(next.spec, plan, clock_.Now()));
  ReleasePorts(ports_, cluster_, cluster);
  submission_ = std::move(next);
  cluster_ = std::move(cluster);
  return absl::OkStatus();
}

JobRecord Supervisor::JobRow() const {
  JobRecord job{
      .id = submission_.id,
      .name = submission_.spec.name,
      .platform = "local",
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
  if (lifecycle_->failure().has_value()) job.failure = FailureToJson(*lifecycle_->failure());
  return job;
}

TaskRecord Supervisor::TaskRow(const TaskId& id, const Lifecycle::Task& task) const {
  const Slot& slot = slots_.at(id);
  return {
      .id = id,
      .state = task.state,
      .attempt = std::max(task.attempt, 0),
      .restarts = task.restarts,
      .host = host_,
      .address = std::string(cluster_.AddressOf(id)),
      .pid = slot.process == nullptr ? 0 : slot.process->pid(),
      .command = ShellJoin(slot.launch.argv),
      .started = task.started,
      .finished = task.finished,
      .exit_code = task.exit_code,
      .reason = task.reason,
  };
}

void Supervisor::Publish() {
  const std::set<TaskId> changed = lifecycle_->TakeChanged();
  std::vector<Event> events = lifecycle_->TakeEvents();
  std::move(events.begin(), events.end(), std::back_inserter(pending_.events));
  const bool retry = !pending_.job.id.empty();
  const bool news = !changed.empty() || !pending_.events.empty() || !pending_.removed.empty() ||
                    lifecycle_->state() != published_state_;
  if (!news && !retry) return;
  if (lifecycle_->done() && !finished_.has_value()) finished_ = clock_.Now();
  std::erase_if(pending_.tasks, [&](const TaskRecord& row) { return changed.contains(row.id); });
  for (const TaskId& id : changed) {
    const auto task = lifecycle_->tasks().find(id);
    if (task != lifecycle_->tasks().end()) pending_.tasks.push_back(TaskRow(id, task->second));
  }
  pending_.job = JobRow();
  if (retry && clock_.Now() < publish_retry_at_) return;
  const absl::Status status = sink_.Apply(pending_);
  if (!status.ok()) {
    std::fprintf(stderr, "%s: cannot write the history: %s\n",
                 FormatLocalTime(clock_.Now()).c_str(), std::string(status.message()).c_str());
    publish_retry_at_ = clock_.Now() + kPublishRetry;
    return;
  }
  published_state_ = pending_.job.state;
  pending_ = {};
  if (control_ != nullptr) control_->NotifyWatchers();
}

}  // namespace muster::local
