// muster show: the tasks of a job.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/report.h"

namespace muster::cli {
namespace {

struct ShowOptions {
  std::string job;
  bool events = false;
  bool json = false;
};

void PrintEvents(Terminal& out, const std::vector<Event>& events) {
  Table table({"TIME", "TASK", "EVENT"}, 2);
  for (const Event& event : events) {
    table.Add({FormatLocalTime(event.time), event.subject, event.message});
  }
  out.PrintLine("");
  out.Print(table.Render(out));
}

absl::StatusOr<int> Show(Context& context, const ShowOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job,
                          options.job.empty() ? LatestJob(context) : FindJob(context, options.job));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(job.id));
  if (options.json) {
    nlohmann::json json = JobToJson(job);
    json["tasks"] = nlohmann::json::array();
    for (const TaskRecord& task : tasks) json["tasks"].push_back(TaskToJson(task));
    json["events"] = nlohmann::json::array();
    for (const Event& event : events) {
      json["events"].push_back(
          {{"sequence", event.sequence},
           {"time", absl::FormatTime(absl::RFC3339_full, event.time, absl::UTCTimeZone())},
           {"kind", event.kind},
           {"task", event.subject},
           {"message", event.message}});
    }
    out.PrintLine(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kSuccess;
  }
  if (IsFinal(job.state)) {
    out.Print(Verdict(out, job));
  } else {
    out.PrintLine(absl::StrCat(out.Paint(Style::kBold, job.id), " ", PaintState(out, job.state),
                               ", created ", FormatAge(absl::Now() - job.created),
                               job.reason.empty() ? "" : ": ", job.reason));
  }
  out.PrintLine("");
  out.Print(TaskTable(out, tasks, absl::Now()));
  if (options.events) PrintEvents(out, events);
  return kSuccess;
}

}  // namespace

void AddShowCommand(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* command = app.add_subcommand("show", "Show the tasks of a job");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("JOB", options->job,
                      "The job (default: the newest that runs, else the newest)");
  command->add_flag("--events", options->events, "Also list what happened, in order of time");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&context, &exit_code, options] {
    const auto code = Show(context, *options);
    exit_code = code.ok() ? *code : Fail(context, code.status());
  });
}

}  // namespace muster::cli
