#include "cli/report.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cluster/address.h"
#include "job/failure.h"
#include "supervise/runner.h"

namespace muster::cli {
namespace {

constexpr int kCommandWidth = 30;

Style StyleOf(absl::string_view state) {
  if (state == "Succeeded") return Style::kGreen;
  if (state == "Running") return Style::kCyan;
  if (state == "Failed" || state == "Lost") return Style::kRed;
  if (state == "Stopped") return Style::kDim;
  return Style::kYellow;
}

nlohmann::json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// Returns the stored report with attempts counted from 1, as in all output.
nlohmann::json FailureToShow(const std::string& failure) {
  const auto report = FailureFromJson(failure);
  if (!report.ok()) return nullptr;
  nlohmann::json json = ParseJson(failure);
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

std::string FailureText(const Terminal& terminal, const JobRecord& job,
                        const FailureReport& report) {
  std::string text;
  if (report.first.has_value()) {
    const TaskFailure& first = *report.first;
    std::string when = FormatLocalTime(first.time);
    if (job.started.has_value()) {
      absl::StrAppend(&when, ", ", FormatElapsed(first.time - *job.started), " after the start");
    }
    absl::StrAppend(&text, "\n  first failure  ",
                    terminal.Paint(Style::kBold, first.task.ToString()), " (attempt ",
                    first.attempt + 1, "), ", when, "\n");
    absl::StrAppend(&text, "  cause          ", terminal.Paint(Style::kRed, first.cause), "\n");
    if (!first.advice.empty()) absl::StrAppend(&text, "  what to do     ", first.advice, "\n");
    if (!first.last_lines.empty()) {
      absl::StrAppend(&text, "  its last lines\n");
      for (const std::string& line : first.last_lines) {
        absl::StrAppend(&text, "    ", terminal.Paint(Style::kDim, "|"), " ", line, "\n");
      }
    }
  }
  if (!report.not_restarted.empty()) {
    absl::StrAppend(&text, "  not restarted  ", report.not_restarted, "\n");
  }
  if (!report.victims.empty()) {
    absl::StrAppend(&text, "  fell with it\n");
    for (const std::string& victim : report.victims) absl::StrAppend(&text, "    ", victim, "\n");
  }
  if (report.first.has_value()) {
    absl::StrAppend(&text, "  all its output: muster logs ", job.id, " ",
                    report.first->task.ToString(), "\n");
  }
  return text;
}

}  // namespace

std::string PaintState(const Terminal& terminal, JobState state) {
  return terminal.Paint(StyleOf(ToString(state)), ToString(state));
}

std::string PaintState(const Terminal& terminal, TaskState state) {
  return terminal.Paint(StyleOf(ToString(state)), ToString(state));
}

std::string TaskTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks,
                      absl::Time now) {
  Table table({"TASK", "STATE", "HOST", "PID", "ADDRESS", "COMMAND", "STARTED", "RESTARTS", "NOTE"},
              8, {2, 5, 6});
  for (const TaskRecord& task : tasks) {
    table.Add({task.id.ToString(), PaintState(terminal, task.state), task.host,
               task.pid == 0 ? "" : absl::StrCat(task.pid), task.address,
               Ellipsize(Printable(task.command), kCommandWidth),
               task.started.has_value() ? FormatAge(now - *task.started) : "",
               absl::StrCat(task.restarts), task.reason});
  }
  return table.Render(terminal);
}

std::string HostTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks) {
  struct Host {
    std::set<std::string> roles;
    std::string address;
    bool silent = false;
    bool busy = false;
  };
  std::map<std::string, Host> hosts;
  for (const TaskRecord& task : tasks) {
    if (task.host.empty()) continue;
    Host& host = hosts[task.host];
    host.roles.insert(task.id.role);
    const auto address = ParseAddress(task.address);
    if (address.has_value()) host.address = address->host;
    host.silent |= absl::EndsWith(task.reason, kHostIsSilent);
    host.busy |= !IsFinal(task.state);
  }
  Table table({"MACHINE", "ROLE", "ADDRESS", "STATUS"}, 3);
  for (const auto& [name, host] : hosts) {
    table.Add({name, absl::StrJoin(host.roles, ", "), host.address,
               host.silent ? terminal.Paint(Style::kRed, "Unreachable")
               : host.busy ? "Connected"
                           : "Released"});
  }
  return table.Render(terminal);
}

std::string Verdict(const Terminal& terminal, const JobRecord& job) {
  std::string text =
      absl::StrCat(terminal.Paint(Style::kBold, job.id), " ", PaintState(terminal, job.state));
  if (job.started.has_value() && job.finished.has_value()) {
    absl::StrAppend(&text, " after ", FormatElapsed(*job.finished - *job.started));
  }
  if (!job.reason.empty()) absl::StrAppend(&text, ": ", job.reason);
  absl::StrAppend(&text, "\n");
  if (job.state == JobState::kSucceeded && !job.model_dir.empty()) {
    absl::StrAppend(&text, "  model dir: ", job.model_dir, "\n");
  }
  if (!job.failure.empty()) {
    const auto report = FailureFromJson(job.failure);
    if (report.ok()) absl::StrAppend(&text, FailureText(terminal, job, *report));
  }
  return text;
}

nlohmann::json JobToJson(const JobRecord& job) {
  nlohmann::json json = {
      {"id", job.id},
      {"name", job.name},
      {"platform", job.platform},
      {"state", std::string(ToString(job.state))},
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

nlohmann::json TaskToJson(const TaskRecord& task) {
  return {
      {"task", task.id.ToString()},
      {"role", task.id.role},
      {"index", task.id.index},
      {"state", std::string(ToString(task.state))},
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

}  // namespace muster::cli
