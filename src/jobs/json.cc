#include "jobs/json.h"

#include <iterator>
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

// The names of supervise::kLoads.
constexpr const char* kLoadNames[] = {"cpu_cores",
                                      "memory_bytes",
                                      "read_bytes_per_second",
                                      "write_bytes_per_second",
                                      "receive_bytes_per_second",
                                      "send_bytes_per_second"};
static_assert(std::size(kLoadNames) == std::size(supervise::kLoads));

nlohmann::json LoadsToJson(const std::optional<Sample>& sample, double Load::*value) {
  if (!sample.has_value()) return nullptr;
  nlohmann::json json;
  for (size_t i = 0; i < std::size(kLoadNames); ++i) {
    const std::optional<Load>& load = (*sample).*supervise::kLoads[i];
    json[kLoadNames[i]] = load.has_value() ? nlohmann::json((*load).*value) : nlohmann::json();
  }
  return json;
}

nlohmann::json ColumnsToJson(const TaskSamples& task) {
  nlohmann::json json = {{"task", task.task.ToString()}};
  for (const char* name : {"time", "interval", "attempt"}) json[name] = nlohmann::json::array();
  for (const char* name : kLoadNames) {
    json[name] = {{"mean", nlohmann::json::array()}, {"peak", nlohmann::json::array()}};
  }
  for (const Sample& sample : task.samples) {
    json["time"].push_back(static_cast<double>(absl::ToUnixMillis(sample.time)) / 1000);
    json["interval"].push_back(absl::ToDoubleSeconds(sample.interval));
    json["attempt"].push_back(sample.attempt + 1);
    for (size_t i = 0; i < std::size(kLoadNames); ++i) {
      const std::optional<Load>& load = sample.*supervise::kLoads[i];
      nlohmann::json& column = json[kLoadNames[i]];
      column["mean"].push_back(load.has_value() ? nlohmann::json(load->mean) : nlohmann::json());
      column["peak"].push_back(load.has_value() ? nlohmann::json(load->peak) : nlohmann::json());
    }
  }
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

nlohmann::json UsageToJson(const TaskUsage& usage) {
  return {{"current", LoadsToJson(usage.current, &Load::mean)},
          {"mean", LoadsToJson(usage.total, &Load::mean)},
          {"peak", LoadsToJson(usage.total, &Load::peak)}};
}

nlohmann::json SamplesToJson(const std::vector<TaskSamples>& tasks) {
  nlohmann::json json = nlohmann::json::array();
  for (const TaskSamples& task : tasks) json.push_back(ColumnsToJson(task));
  return json;
}

nlohmann::json JobDetailsToJson(const JobDetails& details) {
  nlohmann::json json = JobToJson(details.job);
  json["progress"] = details.progress ? ProgressToJson(*details.progress) : nlohmann::json();
  for (const char* list : {"tasks", "machines", "events"}) json[list] = nlohmann::json::array();
  for (const job::TaskRecord& task : details.tasks) {
    nlohmann::json shown = TaskToJson(details.job.id, task);
    const auto usage = details.usage.find(task.id);
    shown["usage"] = usage == details.usage.end() ? nlohmann::json() : UsageToJson(usage->second);
    json["tasks"].push_back(std::move(shown));
  }
  for (const platform::Machine& machine : details.machines) {
    json["machines"].push_back(MachineToJson(machine));
  }
  for (const job::Event& event : details.events) json["events"].push_back(EventToJson(event));
  return json;
}

}  // namespace muster::jobs
