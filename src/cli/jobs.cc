// muster jobs: every job, newest first; and muster jobs prune.
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/place_options.h"
#include "cli/report.h"
#include "launch/job_dir.h"

namespace muster::cli {
namespace {

struct JobsOptions {
  PlaceOptions place;
  bool running = false;
  bool json = false;
};

struct PruneOptions {
  int keep = 100;
  bool yes = false;
};

// Those of the history, or all that a platform has, whoever started them.
absl::StatusOr<std::vector<JobRecord>> Collect(Context& context, const JobsOptions& options) {
  const std::string& name = options.place.platform;
  MUSTER_RETURN_IF_ERROR(options.place.Check());
  if (name.empty() && !options.place.ToJson().is_null()) {
    return absl::InvalidArgumentError(
        "a namespace or a context is for jobs on Kubernetes: add --on kubernetes");
  }
  if (!name.empty()) {
    MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(name));
    if (platform->is_observed()) return platform->List(options.place.ToJson());
  }
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(auto jobs, history->ListJobs({.only_active = options.running}));
  std::erase_if(jobs, [&](const JobRecord& job) { return !name.empty() && job.platform != name; });
  for (JobRecord& job : jobs) MUSTER_RETURN_IF_ERROR(Refresh(context, job));
  return jobs;
}

absl::StatusOr<int> List(Context& context, const JobsOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(auto jobs, Collect(context, options));
  if (options.running) {
    std::erase_if(jobs, [](const JobRecord& job) { return IsFinal(job.state); });
  }
  if (options.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const JobRecord& job : jobs) json.push_back(JobToJson(job));
    out.PrintLine(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kSuccess;
  }
  if (jobs.empty()) {
    out.PrintLine(options.running ? "No job is running."
                                  : "There are no jobs yet; `muster run job.yaml` starts one.");
    return kSuccess;
  }
  const absl::Time now = absl::Now();
  Table table({"JOB", "STATE", "PLATFORM", "TASKS", "CREATED", "RAN", "NOTE"}, 6);
  for (const JobRecord& job : jobs) {
    const bool ran = job.started.has_value();
    table.Add({job.id, PaintState(out, job.state), job.platform, absl::StrCat(job.tasks),
               FormatAge(now - job.created),
               ran ? FormatElapsed(job.finished.value_or(now) - *job.started) : "", job.reason});
  }
  out.Print(table.Render(out));
  return kSuccess;
}

absl::StatusOr<int> Prune(Context& context, const PruneOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, history->FinishedBeyond(options.keep));
  if (jobs.empty()) {
    out.PrintLine("Nothing to prune.");
    return kSuccess;
  }
  out.PrintLine(absl::StrCat("Removes the logs and the history of ", jobs.size(),
                             " finished jobs, ", jobs.back().id, " to ", jobs.front().id,
                             ". Model dirs are not touched."));
  out.Flush();
  if (AskConsent(context.err(), options.yes, "Remove them?") == Consent::kRefused) {
    out.PrintLine("Nothing was removed.");
    return kSuccess;
  }
  for (const JobRecord& job : jobs) {
    // The record goes last: a folder that could not be removed is found again by the next prune.
    std::error_code error;
    // By id, not by the record: in a home that was copied, records still name the folders of the
    // original.
    const std::string directory = JobDir::Of(context.home(), job.id).path();
    std::filesystem::remove_all(directory, error);
    if (error) return absl::UnavailableError(absl::StrCat(directory, ": ", error.message()));
    MUSTER_RETURN_IF_ERROR(history->DeleteJob(job.id));
  }
  out.PrintLine(absl::StrCat("Removed ", jobs.size(), " jobs."));
  return kSuccess;
}

}  // namespace

void AddJobsCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("jobs", "List every job, newest first");
  auto options = std::make_shared<JobsOptions>();
  command.Flag("--running", &options->running, "Only those that are not finished");
  command.Flag("--json", &options->json, "Print JSON");
  AddPlaceOptions(command, &options->place);
  command.OnCall([&context, options] { return List(context, *options); });

  Command& prune = command.AddCommand("prune", "Remove old finished jobs and their logs");
  auto prune_options = std::make_shared<PruneOptions>();
  prune.Option("--keep", &prune_options->keep, "How many finished jobs stay, the newest");
  prune.Flag("-y,--yes", &prune_options->yes, "Do not ask");
  prune.OnCall([&context, prune_options] { return Prune(context, *prune_options); });
}

}  // namespace muster::cli
