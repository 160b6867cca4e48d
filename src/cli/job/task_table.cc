#include "cli/job/task_table.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/job/report.h"
#include "jobs/find/tasks.h"

namespace muster::cli {
namespace {

constexpr int kCommandWidth = 30;

std::string FormatCores(double cores) { return absl::StrFormat("%.2f", cores); }
std::string FormatMemory(double bytes) { return base::FormatBytes(static_cast<int64_t>(bytes)); }

// Returns the current value of a running task: "1.02", or the peak of an ended one: "peak 1.02".
std::string UsageCell(const job::TaskRecord& task, const jobs::TaskUsage& usage,
                      std::optional<jobs::Load> jobs::Sample::*load,
                      std::string (*format)(double)) {
  const bool ended = job::IsFinal(task.state);
  const std::optional<jobs::Sample>& sample = ended ? usage.total : usage.current;
  if (!sample.has_value() || !((*sample).*load).has_value()) return "";
  const jobs::Load& value = *((*sample).*load);
  return ended ? absl::StrCat("peak ", format(value.peak)) : format(value.mean);
}

}  // namespace

std::string TaskTable(const Terminal& terminal, const std::string& job_id,
                      const std::vector<job::TaskRecord>& tasks, absl::Time now,
                      const std::map<cluster::TaskId, jobs::TaskUsage>& usage) {
  std::vector<std::string> header = {"TASK",    "ID",      "STATE",   "HOST",    "PID",
                                     "ADDRESS", "COMMAND", "STARTED", "RESTARTS"};
  if (!usage.empty()) header.insert(header.end(), {"CPU", "MEM"});
  const int note = static_cast<int>(header.size());
  header.emplace_back("NOTE");
  Table table(std::move(header), note, {6, 3, 7, 1});
  for (const job::TaskRecord& task : tasks) {
    std::vector<std::string> row = {
        task.id.ToString(),
        jobs::ShortTaskId(job_id, task.id),
        PaintState(terminal, task.state),
        task.host,
        task.pid == 0 ? "" : absl::StrCat(task.pid),
        task.address,
        base::Ellipsize(base::Printable(task.command), kCommandWidth),
        task.started.has_value() ? base::FormatAge(now - *task.started) : "",
        absl::StrCat(task.restarts)};
    if (!usage.empty()) {
      const auto found = usage.find(task.id);
      const jobs::TaskUsage used = found == usage.end() ? jobs::TaskUsage() : found->second;
      row.push_back(UsageCell(task, used, &jobs::Sample::cpu, FormatCores));
      row.push_back(UsageCell(task, used, &jobs::Sample::memory, FormatMemory));
    }
    row.push_back(task.reason);
    table.Add(std::move(row));
  }
  return table.Render(terminal);
}

std::string MachineTable(const Terminal& terminal, const std::vector<platform::Machine>& machines) {
  Table table({"MACHINE", "ROLE", "PROVIDER", "REGION", "SIZE", "PUBLIC IP", "STATUS"}, 6,
              {4, 3, 2});
  for (const platform::Machine& machine : machines) {
    const bool is_bad = machine.status == platform::kMachineUnreachable;
    table.Add({base::Printable(machine.name), machine.roles, base::Printable(machine.provider),
               base::Printable(machine.region), base::Printable(machine.size),
               base::Printable(machine.public_ip),
               is_bad ? terminal.Paint(Style::kRed, machine.status) : machine.status});
  }
  return table.Render(terminal);
}

}  // namespace muster::cli
