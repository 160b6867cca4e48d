// muster logs: prints the output of a job's tasks.
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/attach.h"
#include "cli/job/target_options.h"
#include "jobs/find/tasks.h"
#include "jobs/results/log_filter.h"
#include "platform/capabilities.h"

namespace muster::cli {
namespace {

struct LogsOptions {
  std::string job;
  std::string job_id;  // another way to name the job
  TargetOptions target;
  std::vector<std::string> tasks;
  bool follow = false;
  int tail = -1;
  std::string n;  // a number of lines, or a namespace
  std::string polling_interval;
  std::string since;
  std::string grep;
  int attempt = -1;
  bool timestamps = false;
  bool json = false;
};

// Interprets -n: a number of lines, as in tail and docker, else a namespace, as in kubectl.
absl::Status ReadN(LogsOptions& options) {
  if (options.n.empty()) return absl::OkStatus();
  int lines = 0;
  if (!absl::SimpleAtoi(options.n, &lines)) {
    options.target.Set("--namespace", options.n);
    return absl::OkStatus();
  }
  if (lines < 0) {
    return absl::InvalidArgumentError(absl::StrCat("-n ", lines, ": expected 0 or more lines"));
  }
  if (!options.since.empty()) {
    return absl::InvalidArgumentError("-n and --since both limit the output; give one");
  }
  options.tail = lines;
  return absl::OkStatus();
}

absl::Status SetPollingInterval(platform::Platform& platform, const std::string& text) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration interval, base::ParseDuration(text));
  auto* polling = platform::CapabilityOf<platform::PollingControl>(platform);
  if (polling != nullptr) return polling->SetPollingInterval(interval);
  return absl::InvalidArgumentError(
      absl::StrCat("--polling-interval is for platforms that must be polled; ", platform.name(),
                   " sends notifications"));
}

// Opens the output of the tasks, positioned and filtered as the options say.
absl::StatusOr<std::unique_ptr<supervise::LogStream>> OpenLogs(
    platform::Platform& platform, const job::JobRecord& job,
    const std::vector<cluster::TaskId>& tasks, const LogsOptions& options) {
  jobs::LogQuery query{.pattern = options.grep};
  if (options.attempt >= 0) query.attempt = options.attempt;
  MUSTER_ASSIGN_OR_RETURN(auto condition, jobs::MakeLogCondition(query));
  MUSTER_ASSIGN_OR_RETURN(auto stream, platform.Logs(job, tasks));
  if (!query.empty()) {
    stream =
        std::make_unique<supervise::FilteredLogStream>(std::move(stream), std::move(condition));
  }
  if (!options.since.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration since, base::ParseDuration(options.since));
    stream->SeekTime(absl::Now() - since);
  }
  if (options.tail >= 0) stream->SeekTail(options.tail);
  return stream;
}

absl::StatusOr<int> Logs(Context& context, LogsOptions& options) {
  MUSTER_RETURN_IF_ERROR(ReadN(options));
  if (!options.polling_interval.empty() && !options.follow) {
    return absl::InvalidArgumentError("--polling-interval is for `muster logs -f`");
  }
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  std::vector<std::string> words = options.tasks;
  for (const std::string& first : {options.job, options.job_id}) {
    if (!first.empty()) words.insert(words.begin(), first);
  }
  if (words.empty()) {
    return absl::InvalidArgumentError("missing JOB; usage: muster logs JOB [TASK…]");
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::TaskSelection selected,
                          jobs::FindTasks(service, words, selection));
  const job::JobRecord& job = selected.job;
  const std::vector<cluster::TaskId>& tasks = selected.tasks;
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(job.platform));
  if (!options.polling_interval.empty()) {
    MUSTER_RETURN_IF_ERROR(SetPollingInterval(*platform, options.polling_interval));
  }
  MUSTER_ASSIGN_OR_RETURN(auto stream, OpenLogs(*platform, job, tasks, options));
  const LogView::Options view_options{
      .prefix = selected.records.size() > 1 || selected.is_whole_job,
      .timestamps = options.timestamps,
      .json = options.json};
  if (options.follow && !job::IsFinal(job.state)) {
    AttachOptions attach{.show_events = false, .view = view_options};
    if (!selected.is_whole_job) attach.tasks = tasks;
    return Attach(context, job, attach, std::move(stream));
  }
  LogView view(context.out(), view_options);
  for (const cluster::TaskId& task : tasks) view.Expect(task);
  view.PrintAvailable(*stream);
  view.PrintPartials(*stream);
  if (!options.follow) return kSuccess;
  PrintVerdict(context, job);
  return ExitCodeOf(job);
}

}  // namespace

void AddLogsCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("logs", "Print the output of a job's tasks");
  auto options = std::make_shared<LogsOptions>();
  command.Argument("JOB", &options->job,
                   "The job, or a task of the latest job, or the id of any task");
  command.Argument(
      "TASK", &options->tasks,
      "Only these tasks: worker:1, an id as in `muster show` or the beginning of one, a role "
      "or a host for all of its tasks");
  command.Flag(
      "-f,--follow", &options->follow,
      "Follow the output until the job ends, then print its verdict; the exit code is the job's");
  command.Option("--job-id", &options->job_id, "The job, if it is not the first word");
  command.Option("--tail", &options->tail, "Only the last N lines");
  command.Option(
      "--polling-interval", &options->polling_interval,
      "With -f: the interval between polls, on platforms that must be polled (default: 30s)");
  command.Option("--since", &options->since, "Only output newer than this: 90s, 5m, 2h");
  command.Option("--grep", &options->grep,
                 "Only lines that match this regular expression, as for grep -E");
  command.Option("--attempt", &options->attempt, "Only the output of this attempt, counted from 1");
  command.Flag("-t,--timestamps", &options->timestamps, "Print the time before each line");
  command.Flag("--json", &options->json, "Print one JSON object per line");
  command.Option(
      "-n", &options->n,
      "A number: the last lines, like --tail; otherwise the namespace, like --namespace");
  options->target.AddTo(command, context, platform::OptionUse::kFind, {"-n"});
  for (const char* other : {"--tail", "--namespace"}) command.Exclude("-n", other);
  command.Exclude("--tail", "--since");
  command.OnCall([&context, options] { return Logs(context, *options); });
}

}  // namespace muster::cli
