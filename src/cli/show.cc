// muster show: prints the tasks of a job.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/print_json.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/target_options.h"
#include "cli/training.h"
#include "storage/url.h"

namespace muster::cli {
namespace {

struct ShowOptions {
  std::string job;
  TargetOptions target;
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

nlohmann::json EventsToJson(const std::vector<Event>& events) {
  nlohmann::json json = nlohmann::json::array();
  for (const Event& event : events) {
    json.push_back(
        {{"sequence", event.sequence},
         {"time", absl::FormatTime(absl::RFC3339_full, event.time, absl::UTCTimeZone())},
         {"kind", event.kind},
         {"task", event.subject.empty() ? nlohmann::json() : nlohmann::json(event.subject)},
         {"message", event.message}});
  }
  return json;
}

absl::StatusOr<int> Show(Context& context, const ShowOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, options.job.empty()
                                                   ? LatestJob(context)
                                                   : FindJob(context, options.job, options.target));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(job.id));
  const auto progress = ReadJobProgress(job, tasks);
  if (options.json) {
    nlohmann::json json = JobToJson(job);
    json["progress"] = progress.has_value() ? ProgressToJson(*progress) : nlohmann::json();
    json["tasks"] = nlohmann::json::array();
    for (const TaskRecord& task : tasks) json["tasks"].push_back(TaskToJson(task));
    json["events"] = EventsToJson(events);
    PrintJson(out, json);
    return kSuccess;
  }
  if (IsFinal(job.state)) {
    // Skips a remote model dir: an unreachable storage must not delay the command.
    const bool here = !storage::IsRemote(job.model_dir);
    out.Print(absl::StrCat(Verdict(out, job), here ? TrainingResult(job) : ""));
  } else {
    out.PrintLine(absl::StrCat(out.Paint(Style::kBold, job.id), " ", PaintState(out, job.state),
                               ", created ", FormatAge(absl::Now() - job.created),
                               job.reason.empty() ? "" : ": ", job.reason));
  }
  if (progress.has_value()) out.PrintLine(absl::StrCat("Progress: ", DescribeProgress(*progress)));
  out.PrintLine("");
  if (job.platform == "ssh") out.PrintLine(HostTable(out, tasks));
  out.Print(TaskTable(out, tasks, absl::Now()));
  if (options.events) PrintEvents(out, events);
  return kSuccess;
}

}  // namespace

void AddShowCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("show", "Show the tasks of a job");
  auto options = std::make_shared<ShowOptions>();
  command.Argument("JOB", &options->job,
                   "The job (default: the newest that runs, else the newest)");
  command.Flag("--events", &options->events, "Also list what happened, in order of time");
  command.Flag("--json", &options->json, "Print JSON");
  AddTargetOptions(command, &options->target);
  command.OnCall([&context, options] { return Show(context, *options); });
}

}  // namespace muster::cli
