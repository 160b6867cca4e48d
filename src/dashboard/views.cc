#include "dashboard/views.h"

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "job/states.h"
#include "jobs/find/machines.h"
#include "jobs/json.h"
#include "jobs/results/attempts.h"
#include "jobs/results/progress.h"
#include "jobs/results/results.h"
#include "supervise/job_dir.h"

namespace muster::dashboard {
namespace {

using nlohmann::json;

constexpr size_t kShownEvents = 200;

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

json AttemptToJson(const jobs::Attempt& attempt) {
  return {{"task", attempt.task.ToString()},
          {"attempt", attempt.number + 1},
          {"started", Rfc3339(attempt.started)},
          {"finished", attempt.finished ? json(Rfc3339(*attempt.finished)) : json()},
          {"outcome", attempt.outcome}};
}

std::vector<std::string> ActionsOf(const job::JobRecord& job) {
  const bool final = job::IsFinal(job.state);
  const bool trains = jobs::TrainSubmission(job).ok() && !job.model_dir.empty();
  std::vector<std::string> actions;
  if (!final) actions.emplace_back("stop");
  if (final) actions.emplace_back("resume");
  if (trains) actions.emplace_back("evaluate");
  actions.emplace_back("run");
  if (final) actions.emplace_back("remove");
  return actions;
}

json TaskView(const job::JobRecord& job, const job::TaskRecord& task) {
  json view = jobs::TaskToJson(job.id, task);
  const auto progress = jobs::ReadProgressFile(supervise::JobDir(job.directory).progress(task.id));
  view["progress"] = progress ? jobs::ProgressToJson(*progress) : json();
  view["waits"] = nullptr;
  return view;
}

}  // namespace

json SummaryOf(jobs::Service& service, const job::JobRecord& job, const jobs::Notes& notes) {
  json summary = jobs::JobToJson(job);
  summary.erase("supervisor_pid");
  summary["notes"] = jobs::NotesToJson(notes);
  std::optional<jobs::Progress> progress;
  if (job.started && !job.directory.empty()) {
    const auto history = service.history();
    const auto tasks = history.ok() ? (*history)->Tasks(job.id) : history.status();
    if (tasks.ok()) progress = jobs::ReadJobProgress(job, *tasks);
  }
  summary["progress"] = progress ? jobs::ProgressToJson(*progress) : json();
  return summary;
}

absl::StatusOr<json> DetailsOf(jobs::Service& service, const job::JobRecord& job,
                               const jobs::Notes& notes) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(job.id));
  json details = {{"job", SummaryOf(service, job, notes)}, {"actions", ActionsOf(job)}};
  for (const char* list : {"tasks", "machines", "attempts", "events"}) {
    details[list] = json::array();
  }
  for (const job::TaskRecord& task : tasks) details["tasks"].push_back(TaskView(job, task));
  for (const platform::Machine& machine : jobs::MachinesOf(service, job, tasks)) {
    details["machines"].push_back(jobs::MachineToJson(machine));
  }
  for (const jobs::Attempt& attempt : jobs::AttemptsOf(events, tasks)) {
    details["attempts"].push_back(AttemptToJson(attempt));
  }
  const size_t skipped = events.size() - std::min(events.size(), kShownEvents);
  for (size_t i = skipped; i < events.size(); ++i) {
    details["events"].push_back(jobs::EventToJson(events[i]));
  }
  return details;
}

json SamplesOf(const std::vector<jobs::TaskSamples>& samples) {
  using Quantity = std::optional<jobs::Load> jobs::Sample::*;
  json tasks = json::array();
  for (const jobs::TaskSamples& of_task : samples) {
    json task = {{"task", of_task.task.ToString()}, {"times", json::array()}};
    for (const jobs::Sample& sample : of_task.samples) {
      task["times"].push_back(absl::ToDoubleSeconds(sample.time - absl::UnixEpoch()));
    }
    const auto add_column = [&](const char* name, Quantity quantity, double jobs::Load::*value) {
      json column = json::array();
      for (const jobs::Sample& sample : of_task.samples) {
        const std::optional<jobs::Load>& load = sample.*quantity;
        column.push_back(load.has_value() ? json((*load).*value) : json());
      }
      task[name] = std::move(column);
    };
    add_column("cpu", &jobs::Sample::cpu, &jobs::Load::mean);
    add_column("cpu_peak", &jobs::Sample::cpu, &jobs::Load::peak);
    add_column("memory", &jobs::Sample::memory, &jobs::Load::mean);
    add_column("memory_peak", &jobs::Sample::memory, &jobs::Load::peak);
    add_column("read", &jobs::Sample::read, &jobs::Load::mean);
    add_column("written", &jobs::Sample::written, &jobs::Load::mean);
    add_column("received", &jobs::Sample::received, &jobs::Load::mean);
    add_column("sent", &jobs::Sample::sent, &jobs::Load::mean);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace muster::dashboard
