// muster jobs: lists jobs, newest first. muster jobs rm, muster jobs prune: remove them.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/report.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "jobs/control/refresh.h"
#include "jobs/control/remove.h"
#include "jobs/find/lookup.h"
#include "jobs/json.h"
#include "platform/capabilities.h"

namespace muster::cli {
namespace {

struct JobsOptions {
  TargetOptions target;
  bool running = false;
  std::vector<std::string> states;
  std::string name;
  std::string since;
  int limit = -1;  // all
  bool json = false;
};

struct RemoveOptions {
  std::vector<std::string> jobs;
  bool force = false;
  bool yes = false;
};

struct PruneOptions {
  int keep = 100;
  bool yes = false;
};

absl::StatusOr<jobs::JobQuery> QueryOf(const JobsOptions& options) {
  jobs::JobQuery query{
      .only_active = options.running, .name = options.name, .limit = std::max(options.limit, 0)};
  MUSTER_ASSIGN_OR_RETURN(query.states, jobs::ParseStates(options.states));
  if (!options.since.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration since, base::ParseDuration(options.since));
    query.since = absl::Now() - since;
  }
  return query;
}

bool SelectsSome(const jobs::JobQuery& query) {
  return !query.states.empty() || !query.name.empty() || query.since > absl::InfinitePast();
}

absl::StatusOr<int> List(Context& context, const JobsOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToListSelection());
  MUSTER_ASSIGN_OR_RETURN(const jobs::JobQuery query, QueryOf(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobRecord> jobs,
                          jobs::ListJobs(context.jobs(), selection, query));
  if (options.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const job::JobRecord& job : jobs) json.push_back(jobs::JobToJson(job));
    PrintJson(out, json);
    return kSuccess;
  }
  if (jobs.empty()) {
    out.PrintLine(SelectsSome(query)  ? "No job matches."
                  : query.only_active ? "No job is running."
                                      : "There are no jobs yet; `muster run job.yaml` starts one.");
    return kSuccess;
  }
  const absl::Time now = absl::Now();
  Table table({"JOB", "STATE", "PLATFORM", "TASKS", "CREATED", "RAN", "NOTE"}, 6);
  for (const job::JobRecord& job : jobs) {
    const bool ran = job.started.has_value();
    table.Add({job.id, PaintState(out, job.state), job.platform, absl::StrCat(job.tasks),
               base::FormatAge(now - job.created),
               ran ? base::FormatElapsed(job.finished.value_or(now) - *job.started) : "",
               job.reason});
  }
  out.Print(table.Render(out));
  return kSuccess;
}

// Announces the removal of a job.
void AnnounceRemoval(Context& context, const job::JobRecord& job) {
  const std::string still =
      job::IsFinal(job.state)
          ? "The model dir is left alone."
          : absl::StrCat("Anything still running ", jobs::WhereIs(context.jobs(), job),
                         ", and the model dir, are left alone.");
  context.out().PrintLine(absl::StrCat("Removing ", job.id, " (", job::ToString(job.state), ", ",
                                       base::Plural(job.tasks, "task"),
                                       ") deletes its logs and history on this machine. ", still));
}

absl::Status RemoveOne(Context& context, const job::JobRecord& job) {
  Terminal& out = context.out();
  const auto platform = context.jobs().platform(job.platform);  // fails for a later version's job
  const bool listed =
      platform.ok() && platform::CapabilityOf<platform::JobCatalog>(**platform) != nullptr;
  MUSTER_RETURN_IF_ERROR(jobs::RemoveJob(context.jobs(), job.id));
  if (job::IsFinal(job.state)) {
    out.PrintLine(absl::StrCat("Removed ", job.id, "."));
    return absl::OkStatus();
  }
  out.PrintLine(absl::StrCat("Removed ", job.id, "; the name '", job.name, "' is free."));
  if (listed) {
    out.PrintLine(absl::StrCat("When ", job.platform, " is reachable again, `muster show ", job.id,
                               " --on ", job.platform, "` finds it there."));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Remove(Context& context, const RemoveOptions& options) {
  Terminal& out = context.out();
  std::vector<job::JobRecord> jobs;
  for (const std::string& reference : options.jobs) {
    MUSTER_ASSIGN_OR_RETURN(job::JobRecord job,
                            jobs::FindRemovable(context.jobs(), reference, options.force));
    const bool twice = std::any_of(jobs.begin(), jobs.end(), [&job](const job::JobRecord& other) {
      return other.id == job.id;
    });
    if (twice) continue;
    AnnounceRemoval(context, job);
    jobs.push_back(std::move(job));
  }
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(
      const bool agreed,
      DemandConsent(context.err(), options.yes, jobs.size() == 1 ? "Remove it?" : "Remove them?",
                    "nothing was removed"));
  if (!agreed) {
    out.PrintLine("Nothing was removed.");
    return kSuccess;
  }
  for (const job::JobRecord& job : jobs) MUSTER_RETURN_IF_ERROR(RemoveOne(context, job));
  return kSuccess;
}

absl::StatusOr<int> Prune(Context& context, const PruneOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, jobs::FinishedBeyond(context.jobs(), options.keep));
  if (jobs.empty()) {
    out.PrintLine("Nothing to prune.");
    return kSuccess;
  }
  const auto count = static_cast<int64_t>(jobs.size());
  out.PrintLine(absl::StrCat("This removes the logs and the history of ",
                             base::Plural(count, "finished job"), ", ", jobs.back().id,
                             count == 1 ? "" : absl::StrCat(" to ", jobs.front().id),
                             ". Model dirs are not touched."));
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed, DemandConsent(context.err(), options.yes,
                                                           "Remove them?", "nothing was removed"));
  if (!agreed) {
    out.PrintLine("Nothing was removed.");
    return kSuccess;
  }
  for (const job::JobRecord& job : jobs) {
    MUSTER_RETURN_IF_ERROR(jobs::RemoveJob(context.jobs(), job.id));
  }
  out.PrintLine(absl::StrCat("Removed ", base::Plural(count, "job"), "."));
  return kSuccess;
}

}  // namespace

void AddJobsCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("jobs", "List every job, newest first");
  auto options = std::make_shared<JobsOptions>();
  command.Flag("--running", &options->running, "Only unfinished jobs");
  command.Option("--state", &options->states,
                 "Only jobs in this state, or in one of several: failed,stopped");
  command.Option("--name", &options->name, "Only jobs of this name, or pattern: 'mnist*'");
  command.Option("--since", &options->since, "Only jobs created within this time: 90s, 5m, 2h");
  command.Option("--limit", &options->limit, "Only the newest N jobs");
  command.Flag("--json", &options->json, "Print JSON");
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return List(context, *options); });

  Command& prune = command.AddCommand("prune", "Remove old finished jobs and their logs");
  auto prune_options = std::make_shared<PruneOptions>();
  prune.Option("--keep", &prune_options->keep, "The number of finished jobs to keep, newest first");
  prune.Flag("-y,--yes", &prune_options->yes,
             "Do not ask for confirmation; required without a terminal");
  prune.OnCall([&context, prune_options] { return Prune(context, *prune_options); });

  Command& remove =
      command.AddCommand("rm", "Remove finished or permanently unreachable jobs, with their logs");
  auto remove_options = std::make_shared<RemoveOptions>();
  remove.Argument("JOB", &remove_options->jobs, "The jobs", Presence::kRequired);
  remove.Flag("--force", &remove_options->force,
              "Also remove a reachable job, unless this machine supervises it; it keeps running");
  remove.Flag("-y,--yes", &remove_options->yes,
              "Do not ask for confirmation; required without a terminal");
  remove.OnCall([&context, remove_options] { return Remove(context, *remove_options); });

  for (const char* word : {"forget", "delete", "remove"}) {
    command.Advise(word, "`muster jobs rm JOB` removes a job");
  }
  for (const char* word : {"list", "ls"}) command.Advise(word, "`muster jobs` lists them");
}

}  // namespace muster::cli
