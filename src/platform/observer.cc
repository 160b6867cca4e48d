#include "platform/observer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/failure_report.h"

namespace muster {

Observer::Observer(const KnownJob& known, absl::Time now) : known_(known), now_(now) {
  change_.job = known.job;
  change_.job.supervisor.reset();
}

void Observer::Tell(std::string kind, std::string subject, std::string message) {
  change_.events.push_back({.time = now_,
                            .kind = std::move(kind),
                            .subject = std::move(subject),
                            .message = std::move(message)});
}

TaskRecord Observer::Before(const TaskId& task) const {
  const auto stored = std::find_if(known_.tasks.begin(), known_.tasks.end(),
                                   [&task](const TaskRecord& other) { return other.id == task; });
  return stored == known_.tasks.end() ? TaskRecord{.id = task} : *stored;
}

void Observer::After(const TaskRecord& task) {
  tasks_.push_back(task);
  const bool known =
      std::find(known_.tasks.begin(), known_.tasks.end(), task) != known_.tasks.end();
  if (!known) change_.tasks.push_back(task);
}

void Observer::Vanished(const std::string& reason) {
  JobRecord& job = change_.job;
  job.finished = now_;
  // A supervisor in the record of a pending job is its submitter: the platform never received the
  // job.
  if (job.state == JobState::kPending && known_.job.supervisor.has_value()) {
    job.state = JobState::kFailed;
    job.reason = "it never started: `muster run` was interrupted";
    return;
  }
  job.state = JobState::kStopped;
  job.reason = reason;
}

std::string Observer::Failure(const std::function<TaskFailure(const TaskRecord&)>& describe) const {
  std::vector<TaskFailure> failures;
  std::vector<std::string> stopped;
  for (const TaskRecord& task : tasks_) {
    if (task.state == TaskState::kFailed) {
      failures.push_back(describe(task));
    } else if (task.state == TaskState::kStopped) {
      stopped.push_back(task.id.ToString());
    }
  }
  FailureReport report{.summary = change_.job.reason};
  if (!failures.empty()) {
    std::stable_sort(failures.begin(), failures.end(),
                     [](const TaskFailure& a, const TaskFailure& b) { return a.time < b.time; });
    CompleteReport(failures, stopped, report);
  }
  return FailureToJson(report);
}

std::optional<StateChange> Observer::Finish() {
  const JobRecord& job = change_.job;
  change_.job.tasks = static_cast<int>(tasks_.size());
  if (IsFinal(job.state)) {
    Tell("job", "", absl::StrCat(ToString(job.state), job.reason.empty() ? "" : ": ", job.reason));
  }
  if (job == known_.job && change_.tasks.empty() && change_.removed.empty() &&
      change_.events.empty()) {
    return std::nullopt;
  }
  return std::move(change_);
}

}  // namespace muster
