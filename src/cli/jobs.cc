// muster jobs: lists jobs, newest first. muster jobs prune, muster jobs forget: remove them.
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/print_json.h"
#include "cli/report.h"
#include "cli/target_options.h"
#include "process/identity.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct JobsOptions {
  TargetOptions target;
  bool running = false;
  bool json = false;
};

struct ForgetOptions {
  std::string job;
  bool force = false;
  bool yes = false;
};

struct PruneOptions {
  int keep = 100;
  bool yes = false;
};

// Returns the jobs in the history, or, for an observed platform, all jobs there.
absl::StatusOr<std::vector<JobRecord>> Collect(Context& context, const JobsOptions& options) {
  const std::string& name = options.target.platform;
  MUSTER_RETURN_IF_ERROR(options.target.Check());
  if (name.empty() && options.target.in_cluster()) {
    return absl::InvalidArgumentError(
        "a namespace or a context is for jobs on Kubernetes: add --on kubernetes");
  }
  if (!name.empty()) {
    MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(name));
    if (platform->is_observed()) return platform->List(options.target.ToTarget());
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
    PrintJson(out, json);
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

// Removes the folder and the record of a job.
absl::Status Remove(Context& context, const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  // Deletes the record last, so that a retry finds a folder that could not be removed. Derives the
  // path from the id: in a copied MUSTER_HOME, records still point to the original folders.
  const std::string directory = JobDir::Of(context.home(), id).path();
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(directory, ": ", error.message()));
  return history->DeleteJob(id);
}

// Returns FailedPrecondition if the job is finished, or can still be stopped. `force` permits the
// latter, unless a process on this machine supervises the job.
absl::Status CheckForgettable(Context& context, const JobRecord& job, bool force) {
  if (IsFinal(job.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat(job.id, " is ", ToString(job.state),
                     ", and its name is free; `muster jobs prune` removes finished jobs"));
  }
  if (IsOutOfReach(context, job)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
  // A live supervisor or submitter on this machine would write the record again.
  const bool is_watched = job.supervisor && FindProcess(*job.supervisor) == Existence::kAlive;
  if (is_watched || !platform->is_observed()) {
    return absl::FailedPreconditionError(absl::StrCat(
        job.id, " is watched over from this machine: `muster stop --now ", job.id, "` ends it"));
  }
  if (force) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(job.id, " is ", ToString(job.state), " and within reach: `muster stop ", job.id,
                   "` ends it; --force forgets it all the same, and leaves it running"));
}

absl::StatusOr<int> Forget(Context& context, const ForgetOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(JobRecord job, history->Resolve(options.job));
  const auto platform = context.platform(job.platform);  // fails if written by a later version
  if (platform.ok()) MUSTER_RETURN_IF_ERROR(Refresh(context, job));
  MUSTER_RETURN_IF_ERROR(CheckForgettable(context, job, options.force));
  const std::string where = WhereIs(context, job);
  out.PrintLine(absl::StrCat("Forgetting ", job.id, " (", ToString(job.state), ", ",
                             Plural(job.tasks, "task"), ") removes its logs and history from this ",
                             "machine. Anything still running ", where,
                             ", and the model dir, are left alone."));
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed,
                          DemandConsent(context.err(), options.yes, "Forget it?",
                                        absl::StrCat(job.id, " was not forgotten")));
  if (!agreed) {
    out.PrintLine("Nothing was forgotten.");
    return kSuccess;
  }
  const bool observed = platform.ok() && (*platform)->is_observed();
  MUSTER_RETURN_IF_ERROR(Remove(context, job.id));
  out.PrintLine(absl::StrCat("Forgot ", job.id, "; the name '", job.name, "' is free."));
  if (observed) {
    out.PrintLine(absl::StrCat("When ", job.platform, " answers again, `muster show ", job.id,
                               " --on ", job.platform, "` finds it there."));
  }
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
  const auto count = static_cast<int64_t>(jobs.size());
  out.PrintLine(absl::StrCat(
      "Removes the logs and the history of ", Plural(count, "finished job"), ", ", jobs.back().id,
      count == 1 ? "" : absl::StrCat(" to ", jobs.front().id), ". Model dirs are not touched."));
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed, DemandConsent(context.err(), options.yes,
                                                           "Remove them?", "nothing was removed"));
  if (!agreed) {
    out.PrintLine("Nothing was removed.");
    return kSuccess;
  }
  for (const JobRecord& job : jobs) MUSTER_RETURN_IF_ERROR(Remove(context, job.id));
  out.PrintLine(absl::StrCat("Removed ", Plural(count, "job"), "."));
  return kSuccess;
}

}  // namespace

void AddJobsCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("jobs", "List every job, newest first");
  auto options = std::make_shared<JobsOptions>();
  command.Flag("--running", &options->running, "Only those that are not finished");
  command.Flag("--json", &options->json, "Print JSON");
  AddTargetOptions(command, &options->target);
  command.OnCall([&context, options] { return List(context, *options); });

  Command& prune = command.AddCommand("prune", "Remove old finished jobs and their logs");
  auto prune_options = std::make_shared<PruneOptions>();
  prune.Option("--keep", &prune_options->keep, "How many finished jobs stay, the newest");
  prune.Flag("-y,--yes", &prune_options->yes, "Do not ask; needed without a terminal");
  prune.OnCall([&context, prune_options] { return Prune(context, *prune_options); });

  Command& forget =
      command.AddCommand("forget", "Remove a job that is out of reach for good, and free its name");
  auto forget_options = std::make_shared<ForgetOptions>();
  forget.Argument("JOB", &forget_options->job, "The job", Presence::kRequired);
  forget.Flag("--force", &forget_options->force,
              "Also one within reach on Kubernetes or Vertex AI, which goes on running");
  forget.Flag("-y,--yes", &forget_options->yes, "Do not ask; needed without a terminal");
  forget.OnCall([&context, forget_options] { return Forget(context, *forget_options); });
}

}  // namespace muster::cli
