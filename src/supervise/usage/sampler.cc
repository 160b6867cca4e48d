#include "supervise/usage/sampler.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "supervise/task_process.h"

namespace muster::supervise {
namespace {

constexpr absl::Duration kFirstInterval = absl::Seconds(1);
constexpr absl::Duration kFirstPeriod = absl::Minutes(1);
constexpr absl::Duration kLaterInterval = absl::Seconds(5);
// CPU time is counted in ticks of 10 ms, so a shorter period has no meaningful rate.
constexpr absl::Duration kShortestPeriod = absl::Milliseconds(500);
constexpr absl::Duration kShortestAttempt = absl::Milliseconds(100);

std::optional<Load> RateOf(const std::optional<int64_t>& before,
                           const std::optional<int64_t>& after, absl::Duration interval) {
  if (!before.has_value() || !after.has_value()) return std::nullopt;
  // A counter of the network starts again if the task changes its namespace.
  const auto bytes = static_cast<double>(std::max<int64_t>(0, *after - *before));
  const double rate = bytes / absl::ToDoubleSeconds(interval);
  return Load{.mean = rate, .peak = rate};
}

}  // namespace

Sample SampleBetween(const process::Usage& before, const process::Usage& after,
                     absl::Duration interval) {
  Sample sample{.interval = interval};
  const double cores = absl::FDivDuration(after.cpu - before.cpu, interval);
  sample.cpu = Load{.mean = cores, .peak = cores};
  if (after.memory_bytes.has_value()) {
    const auto bytes = static_cast<double>(*after.memory_bytes);
    sample.memory = Load{.mean = bytes, .peak = bytes};
  }
  sample.read = RateOf(before.read_bytes, after.read_bytes, interval);
  sample.written = RateOf(before.written_bytes, after.written_bytes, interval);
  sample.received = RateOf(before.received_bytes, after.received_bytes, interval);
  sample.sent = RateOf(before.sent_bytes, after.sent_bytes, interval);
  return sample;
}

void Sampler::Begin(const cluster::TaskId& task, int attempt, pid_t pid, absl::Time now) {
  if (attempts_.empty()) next_ = now + kFirstInterval;
  next_ = std::min(next_, now + kFirstInterval);
  Attempt& started = attempts_[task] =
      Attempt{.number = attempt, .pid = pid, .started = now, .last_time = now};
  // A new process has not used the disk. The counters of a network count from before its start.
  started.last.read_bytes = started.last.written_bytes = 0;
}

std::optional<Sample> Sampler::End(const cluster::TaskId& task, absl::Time now) {
  const auto found = attempts_.find(task);
  if (found == attempts_.end()) return std::nullopt;
  Attempt attempt = std::move(found->second);
  attempts_.erase(found);
  const absl::Duration interval = now - attempt.last_time;
  if (interval < (attempt.was_sampled ? kShortestPeriod : kShortestAttempt)) return std::nullopt;
  const auto root = process::ReadProcess(attempt.pid);
  if (!root.ok()) return std::nullopt;
  Sample sample = SampleBetween(attempt.last, attempt.meter.ReadLast(*root), interval);
  sample.time = now;
  sample.attempt = attempt.number;
  return sample;
}

std::vector<std::pair<cluster::TaskId, Sample>> Sampler::Take(absl::Time now) {
  std::vector<std::pair<cluster::TaskId, Sample>> samples;
  bool any_young = false;
  for (const auto& [task, processes] : FindProcesses()) {
    Attempt& attempt = attempts_.at(task);
    any_young |= now - attempt.started < kFirstPeriod;
    const absl::Duration interval = now - attempt.last_time;
    // The interval of a task that starts shortly before the others are due lasts until next time.
    if (interval < kShortestPeriod) continue;
    const process::Usage usage = attempt.meter.Read(processes);
    Sample sample = SampleBetween(attempt.last, usage, interval);
    sample.time = now;
    sample.attempt = attempt.number;
    attempt.last = usage;
    attempt.last_time = now;
    attempt.was_sampled = true;
    samples.emplace_back(task, std::move(sample));
  }
  next_ = now + (any_young ? kFirstInterval : kLaterInterval);
  return samples;
}

std::map<cluster::TaskId, std::vector<process::ProcessInfo>> Sampler::FindProcesses() {
  std::map<pid_t, cluster::TaskId> mains;
  for (const auto& [task, attempt] : attempts_) mains[attempt.pid] = task;
  const process::ProcessSnapshot snapshot;
  const std::vector<process::ProcessInfo> children = snapshot.Children(::getpid());
  std::map<cluster::TaskId, std::vector<process::ProcessInfo>> processes;
  const auto add = [&](const cluster::TaskId& task, const process::ProcessInfo& root) {
    processes[task].push_back(root);
    for (const process::ProcessInfo& process : snapshot.Descendants(root.pid)) {
      processes[task].push_back(process);
    }
  };
  for (const process::ProcessInfo& child : children) {
    const auto main = mains.find(child.pid);
    // End() reads a process that has exited.
    if (main != mains.end() && !child.zombie) add(main->second, child);
  }
  std::map<pid_t, Orphan> orphans;
  for (const process::ProcessInfo& child : children) {
    if (mains.contains(child.pid)) continue;
    const auto task = TaskOf(child, orphans);
    if (task.has_value() && processes.contains(*task)) add(*task, child);
  }
  orphans_ = std::move(orphans);
  return processes;
}

std::optional<cluster::TaskId> Sampler::TaskOf(const process::ProcessInfo& orphan,
                                               std::map<pid_t, Orphan>& orphans) const {
  Orphan found{.start_ticks = orphan.start_ticks};
  const auto known = orphans_.find(orphan.pid);
  if (known != orphans_.end() && known->second.start_ticks == orphan.start_ticks) {
    found = known->second;
  } else {
    const auto mark = ReadAttemptMark(orphan.pid);
    if (!mark.has_value()) return std::nullopt;  // not readable during exec: try again next time
    const auto task = cluster::TaskId::Parse(mark->task);
    if (mark->job == job_id_ && task.ok()) found.task = *task;
    found.attempt = mark->attempt;
  }
  orphans[orphan.pid] = found;
  if (!found.task.has_value()) return std::nullopt;
  const auto attempt = attempts_.find(*found.task);
  if (attempt == attempts_.end() || absl::StrCat(attempt->second.number) != found.attempt) {
    return std::nullopt;
  }
  return found.task;
}

}  // namespace muster::supervise
