// muster show: prints the tasks of a job.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/report.h"
#include "cli/job/target_options.h"
#include "cli/job/task_table.h"
#include "cli/terminal/print_json.h"
#include "jobs/find/lookup.h"
#include "jobs/find/machines.h"
#include "jobs/json.h"
#include "jobs/results/progress.h"
#include "jobs/results/results.h"
#include "jobs/results/samples.h"
#include "storage/url.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct ShowOptions {
  std::string job;
  TargetOptions target;
  bool events = false;
  bool file = false;
  bool json = false;
};

void PrintEvents(Terminal& out, const std::vector<job::Event>& events) {
  Table table({"TIME", "TASK", "EVENT"}, 2);
  for (const job::Event& event : events) {
    table.Add({base::FormatLocalTime(event.time), event.subject, event.message});
  }
  out.PrintLine("");
  out.Print(table.Render(out));
}

absl::StatusOr<int> Show(Context& context, const ShowOptions& options) {
  Terminal& out = context.out();
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job,
                          options.job.empty() ? jobs::LatestJob(service)
                                              : jobs::FindJob(service, options.job, selection));
  if (options.file) {
    MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                            supervise::JobDir(job.directory).LoadSubmission());
    out.PrintData(submission.source);
    return kSuccess;
  }
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(job.id));
  const auto progress = jobs::ReadJobProgress(job, tasks);
  const auto usage = jobs::ReadUsage(job, tasks);
  if (options.json) {
    PrintJson(out, jobs::JobDetailsToJson({.job = job,
                                           .progress = progress,
                                           .tasks = tasks,
                                           .usage = usage,
                                           .machines = jobs::MachinesOf(service, job, tasks),
                                           .events = events}));
    return kSuccess;
  }
  if (job::IsFinal(job.state)) {
    // Skips a remote model dir: an unreachable storage must not delay the command.
    const bool here = !storage::IsRemote(job.model_dir);
    out.Print(Verdict(out, job));
    if (here) out.Print(TrainingLines(job, jobs::ReadTrainingResult(job)));
  } else {
    out.PrintLine(absl::StrCat(out.Paint(Style::kBold, job.id), " ", PaintState(out, job.state),
                               ", created ", base::FormatAge(absl::Now() - job.created),
                               job.reason.empty() ? "" : ": ", job.reason));
  }
  if (progress.has_value())
    out.PrintLine(absl::StrCat("Progress: ", jobs::DescribeProgress(*progress)));
  out.PrintLine("");
  const auto machines = jobs::MachinesOf(service, job, tasks);
  if (!machines.empty()) out.PrintLine(MachineTable(out, machines));
  out.Print(TaskTable(out, job.id, tasks, absl::Now(), usage));
  if (options.events) PrintEvents(out, events);
  return kSuccess;
}

}  // namespace

void AddShowCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("show", "Show the tasks of a job");
  auto options = std::make_shared<ShowOptions>();
  command.Argument("JOB", &options->job,
                   "The job (default: the newest running one, else the newest)");
  command.Flag("--events", &options->events, "Also list its events, oldest first");
  command.Flag("--file", &options->file, "Print its job file instead, with all overrides");
  command.Flag("--json", &options->json, "Print JSON");
  command.Exclude("--file", "--json");
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return Show(context, *options); });
}

}  // namespace muster::cli
