#include "supervise/processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/regular_file.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "process/spawn.h"
#include "process/tree.h"
#include "supervise/exit_cause.h"
#include "supervise/log/log_reader.h"
#include "supervise/ports.h"

namespace muster::supervise {
namespace {

constexpr int kReportedLines = 20;
constexpr int64_t kMaxErrorFile = 1 << 20;
constexpr absl::Duration kReadinessInterval = absl::Milliseconds(50);
constexpr absl::Duration kOrphanInterval = absl::Milliseconds(20);
constexpr absl::Duration kOrphanTimeout = absl::Seconds(2);

absl::Duration StallCheckInterval(const job::StallPolicy& stall) {
  return std::clamp(stall.timeout / 4, absl::Milliseconds(50), absl::Seconds(5));
}

}  // namespace

Processes::Processes(JobDir dir, std::string job_id, process::EventLoop& loop, RunnerEvents& events)
    : dir_(std::move(dir)),
      job_id_(std::move(job_id)),
      environment_(process::CurrentEnvironment()),
      loop_(loop),
      events_(events),
      oom_kills_(OomKillCount()),
      sampler_(job_id_) {}

Processes::~Processes() = default;

void Processes::Start(const TaskStart& start) {
  Slot& slot = slots_[start.task];
  slot.start = start;
  if (const absl::Status spawned = Spawn(slot); !spawned.ok()) {
    events_.OnEnded(start.task, ExplainSpawnFailure(spawned, start.task.role), clock_.Now());
    return;
  }
  slot.started = clock_.Now();
  slot.waits_for_port = start.waits_for_port;
  pids_[slot.process->pid()] = start.task;
  sampler_.Begin(start.task, start.attempt, slot.process->pid(), slot.started);
  events_.OnStarted(start.task, slot.process->pid());
}

absl::Status Processes::Spawn(Slot& slot) {
  const cluster::TaskId& id = slot.start.task;
  const std::string run_dir = dir_.run_dir(id);
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(run_dir));
  // The previous attempt may have left these files.
  ::unlink(base::JoinPath(run_dir, "error.json").c_str());
  ::unlink(dir_.progress(id).c_str());
  if (slot.log == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(slot.log, LogWriter::Open(dir_.logs(), id,
                                                      {.rotate_bytes = policies_.log_rotate_bytes,
                                                       .keep = policies_.log_keep}));
  }
  slot.log->BeginAttempt(slot.start.attempt);
  slot.stall_reported = false;
  MUSTER_ASSIGN_OR_RETURN(slot.process,
                          TaskProcess::Start(slot.start.launch, environment_, *slot.log, loop_));
  return absl::OkStatus();
}

void Processes::End(const cluster::TaskId& task, bool kill) {
  const auto slot = slots_.find(task);
  if (slot == slots_.end() || slot->second.process == nullptr) return;
  if (kill) {
    to_kill_.insert(task);
  } else {
    slot->second.process->Terminate();
  }
}

// One snapshot serves all kills, because its cost grows with the number of processes on the
// machine.
void Processes::KillTrees() {
  if (to_kill_.empty()) return;
  const process::ProcessSnapshot processes;
  for (const cluster::TaskId& task : std::exchange(to_kill_, {})) {
    const auto slot = slots_.find(task);
    if (slot == slots_.end() || slot->second.process == nullptr) continue;
    slot->second.process->KillTree(processes);
  }
}

LogPosition Processes::LogEnd(const cluster::TaskId& task) const {
  const auto slot = slots_.find(task);
  if (slot == slots_.end() || slot->second.log == nullptr) return {};
  return {slot->second.log->segment(), static_cast<uint64_t>(slot->second.log->offset())};
}

void Processes::OnChildren() {
  for (;;) {
    // WNOWAIT keeps the child a zombie: its pid, and so its group, cannot be reused before the
    // group is killed.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    const pid_t pid = info.si_pid;
    int status = 0;
    const auto main = pids_.find(pid);
    if (main != pids_.end()) {
      ::kill(-pid, SIGKILL);
      const auto sample = sampler_.End(main->second, clock_.Now());
      if (sample.has_value()) events_.OnSample(main->second, *sample);
    }
    ::waitpid(pid, &status, 0);
    if (main != pids_.end()) {
      slots_.at(main->second).process->OnExit(process::ExitStatus::FromWait(status), clock_.Now());
      pids_.erase(main);
      orphans_until_ = clock_.Now() + kOrphanTimeout;
      continue;
    }
    for (auto& [id, slot] : slots_) {
      if (slot.capture == pid) FinishCapture(id, slot);
    }
  }
  CheckOrphans();
}

// An orphan cannot be identified during exec, and may fork before it is killed. Scans are repeated
// until no orphan is left, but no longer than kOrphanTimeout after the end of an attempt.
void Processes::CheckOrphans() {
  const bool remain = KillOrphans(
      job_id_, [this](pid_t pid) { return pids_.contains(pid); },
      [this](const AttemptMark& mark) {
        return std::any_of(pids_.begin(), pids_.end(), [&](const auto& main) {
          return slots_.at(main.second).process->mark() == mark;
        });
      });
  const absl::Time now = clock_.Now();
  orphans_at_ = remain && now < orphans_until_ ? now + kOrphanInterval : absl::InfiniteFuture();
}

absl::Time Processes::next_timer() const {
  if (!to_kill_.empty()) return absl::InfinitePast();
  const absl::Time now = clock_.Now();
  absl::Time next = std::min(orphans_at_, sampler_.next_timer());
  for (const auto& [id, slot] : slots_) {
    if (slot.process != nullptr) next = std::min(next, slot.process->give_up_at());
    next = std::min(next, slot.capture_until);
    if (slot.waits_for_port) next = std::min(next, now + kReadinessInterval);
  }
  if (policies_.stall.has_value())
    next = std::min(next, now + StallCheckInterval(*policies_.stall));
  return next;
}

void Processes::Advance() {
  KillTrees();
  if (orphans_at_ <= clock_.Now()) CheckOrphans();
  FinishAttempts();
  CheckReadiness();
  CheckStalls();
  CheckLogs();
  TakeSamples();
}

AttemptEnd Processes::Explain(const Slot& slot) {
  const cluster::TaskId& id = slot.start.task;
  const process::ExitStatus& status = *slot.process->exit_status();
  ExitEvidence evidence;
  if (!status.ok()) {
    evidence.last_lines = LastLines(dir_.logs(), id, kReportedLines);
    evidence.error_file =
        base::ReadRegularFile(base::JoinPath(dir_.run_dir(id), "error.json"), kMaxErrorFile)
            .value_or("");
    evidence.runs_shell = slot.start.launch.argv[0] == "/bin/sh";
    evidence.port = slot.start.port;
    evidence.port_is_ours = slot.start.port_is_picked && IsPortInUse(evidence.port);
  }
  if (status.signal() == SIGKILL) {
    const int64_t kills = OomKillCount();
    evidence.oom_killed = kills > oom_kills_;
    oom_kills_ = kills;
  }
  return ExplainExit(status, evidence);
}

void Processes::FinishAttempts() {
  const absl::Time now = clock_.Now();
  for (auto& [id, slot] : slots_) {
    if (slot.process == nullptr || !slot.process->Finished(now)) continue;
    const AttemptEnd end = Explain(slot);
    slot.process.reset();
    slot.waits_for_port = false;
    slot.capture = 0;
    slot.capture_until = absl::InfiniteFuture();
    events_.OnEnded(id, end, now);
  }
}

void Processes::CheckReadiness() {
  std::set<int> ports;
  for (auto& [id, slot] : slots_) {
    if (!slot.waits_for_port) continue;
    if (ports.empty()) ports = ListeningPorts();
    if (!ports.contains(slot.start.port)) continue;
    slot.waits_for_port = false;
    events_.OnReady(id);
  }
}

void Processes::CheckLogs() {
  for (auto& [id, slot] : slots_) {
    if (slot.log == nullptr || slot.log->lost_bytes() == slot.reported_loss) continue;
    const bool first = slot.reported_loss == 0;
    slot.reported_loss = slot.log->lost_bytes();
    if (!first) continue;
    events_.OnNote(
        "log", id.ToString(),
        absl::StrCat("output is lost, the task continues: ", slot.log->status().message()));
  }
}

void Processes::TakeSamples() {
  const absl::Time now = clock_.Now();
  if (now < sampler_.next_timer()) return;
  for (const auto& [task, sample] : sampler_.Take(now)) events_.OnSample(task, sample);
}

void Processes::CheckStalls() {
  const absl::Time now = clock_.Now();
  for (auto& [id, slot] : slots_) {
    if (slot.process == nullptr || slot.process->exit_status().has_value()) continue;
    if (slot.capture == 0) {
      if (policies_.stall.has_value()) CheckStall(id, slot, now);
    } else if (now >= slot.capture_until) {
      ::kill(-slot.capture, SIGKILL);
      FinishCapture(id, slot);
    }
  }
}

void Processes::CheckStall(const cluster::TaskId& id, Slot& slot, absl::Time now) {
  const absl::Time touched = slot.progress.LastChange(dir_.progress(id), now);
  const absl::Time last = std::max({slot.started, slot.log->last_output(), touched});
  if (now - last < policies_.stall->timeout) {
    slot.stall_reported = false;
    return;
  }
  if (slot.stall_reported) return;
  slot.stall_reported = true;
  const auto capture = CaptureStacks(slot.process->pid(), dir_.stacks(id, slot.start.attempt));
  slot.capture = capture.value_or(0);
  slot.capture_until = now + kCaptureTimeout;
  if (slot.capture == 0) FinishCapture(id, slot);
}

void Processes::FinishCapture(const cluster::TaskId& id, Slot& slot) {
  slot.capture = 0;
  slot.capture_until = absl::InfiniteFuture();
  if (slot.process == nullptr || slot.process->exit_status().has_value()) return;
  if (!policies_.stall.has_value()) return;  // removed by an update
  events_.OnStalled(id, absl::StrCat("stalled: no output and no step for ",
                                     base::DurationToString(policies_.stall->timeout),
                                     "; stacks in ", dir_.stacks(id, slot.start.attempt)));
}

}  // namespace muster::supervise
