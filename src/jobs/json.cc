#include "jobs/json.h"

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/text/json.h"
#include "job/failure.h"
#include "jobs/find/tasks.h"

namespace muster::jobs {
namespace {

nlohmann::json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// Returns the stored report with attempts counted from 1, as in all output.
nlohmann::json FailureToShow(const std::string& failure) {
  const auto report = job::FailureFromJson(failure);
  if (!report.ok()) return nullptr;
  nlohmann::json json = base::ParseJson(failure);
  json["not_restarted"] = TextOrNull(report->not_restarted);
  if (!report->first.has_value()) {
    json["first"] = nullptr;
    return json;
  }
  nlohmann::json& first = json["first"];
  first["attempt"] = report->first->attempt + 1;
  first["advice"] = TextOrNull(report->first->advice);
  if (!report->first->exit_code.has_value()) first["exit_code"] = nullptr;
  return json;
}

nlohmann::json TimeOrNull(const std::optional<absl::Time>& time) {
  if (!time.has_value()) return nullptr;
  return absl::FormatTime(absl::RFC3339_full, *time, absl::UTCTimeZone());
}

}  // namespace

nlohmann::json JobToJson(const job::JobRecord& job) {
  nlohmann::json json = {
      {"id", job.id},
      {"name", job.name},
      {"platform", job.platform},
      {"state", std::string(job::ToString(job.state))},
      {"reason", TextOrNull(job.reason)},
      {"created", TimeOrNull(job.created)},
      {"started", TimeOrNull(job.started)},
      {"finished", TimeOrNull(job.finished)},
      {"directory", TextOrNull(job.directory)},
      {"model_dir", TextOrNull(job.model_dir)},
      {"resumed_from", TextOrNull(job.resumed_from)},
      {"tasks", job.tasks},
  };
  json["supervisor_pid"] =
      job.supervisor.has_value() ? nlohmann::json(job.supervisor->pid) : nlohmann::json(nullptr);
  json["failure"] = FailureToShow(job.failure);
  return json;
}

nlohmann::json TaskToJson(const std::string& job_id, const job::TaskRecord& task) {
  return {
      {"task", task.id.ToString()},
      {"id", ShortTaskId(job_id, task.id)},
      {"role", task.id.role},
      {"index", task.id.index},
      {"state", std::string(job::ToString(task.state))},
      {"attempt", task.attempt + 1},
      {"restarts", task.restarts},
      {"host", TextOrNull(task.host)},
      {"address", TextOrNull(task.address)},
      {"pid", task.pid == 0 ? nlohmann::json(nullptr) : nlohmann::json(task.pid)},
      {"command", TextOrNull(task.command)},
      {"started", TimeOrNull(task.started)},
      {"finished", TimeOrNull(task.finished)},
      {"exit_code",
       task.exit_code.has_value() ? nlohmann::json(*task.exit_code) : nlohmann::json(nullptr)},
      {"reason", TextOrNull(task.reason)},
  };
}

nlohmann::json MachineToJson(const platform::Machine& machine) {
  return {{"machine", machine.name},
          {"role", TextOrNull(machine.roles)},
          {"provider", TextOrNull(machine.provider)},
          {"region", TextOrNull(machine.region)},
          {"size", TextOrNull(machine.size)},
          {"public_ip", TextOrNull(machine.public_ip)},
          {"status", machine.status}};
}

nlohmann::json EventToJson(const job::Event& event) {
  return {{"sequence", event.sequence},
          {"time", TimeOrNull(event.time)},
          {"kind", event.kind},
          {"task", TextOrNull(event.subject)},
          {"message", event.message}};
}

nlohmann::json ProgressToJson(const Progress& progress) {
  const auto or_null = [](const auto& value) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
  };
  // nlohmann::json writes a NaN loss as null.
  return {{"step", progress.step},
          {"steps", or_null(progress.steps)},
          {"loss", or_null(progress.loss)},
          {"examples_per_second", or_null(progress.examples_per_second)}};
}

nlohmann::json JobDetailsToJson(const JobDetails& details) {
  nlohmann::json json = JobToJson(details.job);
  json["progress"] = details.progress ? ProgressToJson(*details.progress) : nlohmann::json();
  for (const char* list : {"tasks", "machines", "events"}) json[list] = nlohmann::json::array();
  for (const job::TaskRecord& task : details.tasks) {
    json["tasks"].push_back(TaskToJson(details.job.id, task));
  }
  for (const platform::Machine& machine : details.machines) {
    json["machines"].push_back(MachineToJson(machine));
  }
  for (const job::Event& event : details.events) json["events"].push_back(EventToJson(event));
  return json;
}

}  // namespace muster::jobs
