// muster logs: prints the output of a job's tasks.
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/target_options.h"

namespace muster::cli {
namespace {

struct LogsOptions {
  std::string job;
  TargetOptions target;
  std::vector<std::string> tasks;
  bool follow = false;
  int tail = -1;
  std::string n;  // a number of lines, or a namespace
  std::string polling_interval;
  std::string since;
  bool timestamps = false;
  bool json = false;
};

// Interprets -n: a number of lines, as in tail and docker, else a namespace, as in kubectl.
absl::Status ReadN(LogsOptions& options) {
  if (options.n.empty()) return absl::OkStatus();
  int lines = 0;
  if (!absl::SimpleAtoi(options.n, &lines)) {
    options.target.kubernetes_namespace = options.n;
    return absl::OkStatus();
  }
  if (lines < 0) {
    return absl::InvalidArgumentError(absl::StrCat("-n ", lines, ": expected 0 or more lines"));
  }
  if (!options.since.empty()) {
    return absl::InvalidArgumentError("-n and --since both say how much to print; give one");
  }
  options.tail = lines;
  return absl::OkStatus();
}

absl::StatusOr<int> Logs(Context& context, LogsOptions options) {
  MUSTER_RETURN_IF_ERROR(ReadN(options));
  if (!options.polling_interval.empty() && !options.follow) {
    return absl::InvalidArgumentError("--polling-interval is for `muster logs -f`");
  }
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, FindJob(context, options.job, options.target));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto records, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, SelectTasks(records, options.tasks));
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
  if (!options.polling_interval.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration interval, ParseDuration(options.polling_interval));
    MUSTER_RETURN_IF_ERROR(platform->SetPollingInterval(interval));
  }
  MUSTER_ASSIGN_OR_RETURN(auto stream, platform->Logs(job, tasks));
  if (!options.since.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration since, ParseDuration(options.since));
    stream->SeekTime(absl::Now() - since);
  }
  if (options.tail >= 0) stream->SeekTail(options.tail);
  const LogView::Options view_options{.prefix = records.size() > 1 || options.tasks.empty(),
                                      .timestamps = options.timestamps,
                                      .json = options.json};
  if (options.follow && !IsFinal(job.state)) {
    AttachOptions attach{.show_events = false, .view = view_options};
    if (!options.tasks.empty()) attach.tasks = tasks;
    return Attach(context, job, attach, std::move(stream));
  }
  LogView view(context.out(), view_options);
  for (const TaskId& task : tasks) view.Expect(task);
  view.PrintAvailable(*stream);
  view.PrintPartials(*stream);
  return kSuccess;
}

}  // namespace

void AddLogsCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("logs", "Print the output of a job's tasks");
  auto options = std::make_shared<LogsOptions>();
  command.Argument("JOB", &options->job, "The job", Presence::kRequired);
  command.Argument("TASK", &options->tasks, "Only these: worker:1, or a role for all of its tasks");
  command.Flag("-f,--follow", &options->follow, "Go on until the job ends");
  command.Option("--tail", &options->tail, "Only the last N lines");
  command.Option("--polling-interval", &options->polling_interval,
                 "Vertex, with -f: how often new output is asked for (default: 30s)");
  command.Option("--since", &options->since, "Only what is younger than this: 90s, 5m, 2h");
  command.Flag("-t,--timestamps", &options->timestamps, "Put the time before each line");
  command.Flag("--json", &options->json, "Print one JSON object a line");
  command.Option("-n", &options->n,
                 "A number: only the last lines, as --tail; else the namespace, as --namespace");
  AddTargetOptions(command, &options->target, "--namespace");
  for (const char* other : {"--tail", "--namespace"}) command.Exclude("-n", other);
  command.Exclude("--tail", "--since");
  command.OnCall([&context, options] { return Logs(context, *options); });
}

}  // namespace muster::cli
