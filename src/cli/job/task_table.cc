#include "cli/job/task_table.h"

#include "absl/strings/str_cat.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/job/report.h"
#include "jobs/find/tasks.h"

namespace muster::cli {
namespace {

constexpr int kCommandWidth = 30;

}  // namespace

std::string TaskTable(const Terminal& terminal, const std::string& job_id,
                      const std::vector<job::TaskRecord>& tasks, absl::Time now) {
  Table table(
      {"TASK", "ID", "STATE", "HOST", "PID", "ADDRESS", "COMMAND", "STARTED", "RESTARTS", "NOTE"},
      9, {6, 3, 7, 1});
  for (const job::TaskRecord& task : tasks) {
    table.Add({task.id.ToString(), jobs::ShortTaskId(job_id, task.id),
               PaintState(terminal, task.state), task.host,
               task.pid == 0 ? "" : absl::StrCat(task.pid), task.address,
               base::Ellipsize(base::Printable(task.command), kCommandWidth),
               task.started.has_value() ? base::FormatAge(now - *task.started) : "",
               absl::StrCat(task.restarts), task.reason});
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
