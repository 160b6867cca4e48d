#include "jobs/results/attempts.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::jobs {
namespace {

// An attempt that has not ended, and whether it has been seen running.
struct Open {
  size_t index = 0;
  bool ready = false;
};

void End(Attempt& attempt, absl::Time time, std::string outcome) {
  attempt.finished = time;
  attempt.outcome = std::move(outcome);
}

// Numbers the attempts of each task so that the last one has the number of its record.
void Number(const std::vector<job::TaskRecord>& tasks, std::vector<Attempt>& attempts) {
  std::map<cluster::TaskId, int> next;
  for (const job::TaskRecord& task : tasks) next[task.id] = task.attempt;
  for (auto it = attempts.rbegin(); it != attempts.rend(); ++it) {
    it->number = std::max(0, next[it->task]--);
  }
}

}  // namespace

std::vector<Attempt> AttemptsOf(const std::vector<job::Event>& events,
                                const std::vector<job::TaskRecord>& tasks) {
  std::vector<Attempt> attempts;
  std::map<cluster::TaskId, Open> open;
  for (const job::Event& event : events) {
    const auto task = cluster::TaskId::Parse(event.subject);
    if (event.kind != "task" || !task.ok()) continue;
    const bool ready = absl::StartsWith(event.message, "running");
    const auto current = open.find(*task);
    if (!ready && !absl::StartsWith(event.message, "started")) {
      if (current == open.end() || absl::StartsWith(event.message, "waits")) continue;
      End(attempts[current->second.index], event.time, event.message);
      open.erase(current);
      continue;
    }
    if (current != open.end() && !current->second.ready && ready) {
      current->second.ready = true;  // it was reported as started before
      continue;
    }
    // All tasks of a job may restart because one failed, without an event of their own.
    if (current != open.end()) End(attempts[current->second.index], event.time, "replaced");
    open[*task] = {.index = attempts.size(), .ready = ready};
    attempts.push_back({.task = *task, .started = event.time, .outcome = "running"});
  }
  for (const job::TaskRecord& task : tasks) {
    const auto current = open.find(task.id);
    if (current == open.end() || !task.finished) continue;
    End(attempts[current->second.index], *task.finished,
        task.reason.empty() ? std::string(job::ToString(task.state)) : task.reason);
  }
  Number(tasks, attempts);
  return attempts;
}

}  // namespace muster::jobs
