#include "platform/observer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/failure_report.h"

namespace muster::platform {

Observer::Observer(const KnownJob& known, absl::Time now) : known_(known), now_(now) {
  change_.job = known.job;
  change_.job.supervisor.reset();
}

void Observer::RecordEvent(std::string kind, std::string subject, std::string message) {
  change_.events.push_back({.time = now_,
                            .kind = std::move(kind),
                            .subject = std::move(subject),
                            .message = std::move(message)});
}

job::TaskRecord Observer::KnownTask(const cluster::TaskId& task) const {
  const auto stored =
      std::find_if(known_.tasks.begin(), known_.tasks.end(),
                   [&task](const job::TaskRecord& other) { return other.id == task; });
  return stored == known_.tasks.end() ? job::TaskRecord{.id = task} : *stored;
}

void Observer::SetTask(const job::TaskRecord& task) {
  tasks_.push_back(task);
  const bool known =
      std::find(known_.tasks.begin(), known_.tasks.end(), task) != known_.tasks.end();
  if (!known) change_.tasks.push_back(task);
}

void Observer::ConcludeAbsent(const std::string& reason) {
  job::JobRecord& job = change_.job;
  job.finished = now_;
  // A supervisor in the record of a pending job is its submitter: the platform never received the
  // job.
  if (job.state == job::JobState::kPending && known_.job.supervisor.has_value()) {
    job.state = job::JobState::kFailed;
    job.reason = kSubmissionInterrupted;
    return;
  }
  job.state = job::JobState::kStopped;
  job.reason = reason;
}

std::optional<job::StateChange> Observer::Run(const std::string& deleted) {
  if (!ReadJob()) ConcludeAbsent(deleted);
  ReadTasks();
  if (change_.job.state == job::JobState::kFailed) change_.job.failure = Failure();
  return Finish();
}

std::string Observer::Failure() const {
  std::vector<job::TaskFailure> failures;
  std::vector<std::string> stopped;
  for (const job::TaskRecord& task : tasks_) {
    if (task.state == job::TaskState::kFailed) {
      failures.push_back(FailureOf(task));
    } else if (task.state == job::TaskState::kStopped) {
      stopped.push_back(task.id.ToString());
    }
  }
  job::FailureReport report{.summary = change_.job.reason};
  if (!failures.empty()) {
    std::stable_sort(
        failures.begin(), failures.end(),
        [](const job::TaskFailure& a, const job::TaskFailure& b) { return a.time < b.time; });
    job::CompleteReport(failures, stopped, report);
  }
  return job::FailureToJson(report);
}

std::optional<job::StateChange> Observer::Finish() {
  const job::JobRecord& job = change_.job;
  change_.job.tasks = static_cast<int>(tasks_.size());
  if (job::IsFinal(job.state)) {
    RecordEvent("job", "",
                absl::StrCat(job::ToString(job.state), job.reason.empty() ? "" : ": ", job.reason));
  }
  if (job == known_.job && change_.tasks.empty() && change_.removed.empty() &&
      change_.events.empty()) {
    return std::nullopt;
  }
  return std::move(change_);
}

}  // namespace muster::platform
