// muster stop: stops jobs.
#include "jobs/control/stop.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/report.h"
#include "cli/job/target_options.h"
#include "jobs/control/refresh.h"
#include "jobs/find/lookup.h"

namespace muster::cli {
namespace {

struct StopOptions {
  std::vector<std::string> jobs;
  TargetOptions target;
  bool all = false;
  bool yes = false;
  bool now = false;
};

// Returns the unfinished jobs of those that the user names. Prints which of them have finished.
absl::StatusOr<std::vector<job::JobRecord>> FindJobs(Context& context, const StopOptions& options) {
  Terminal& out = context.out();
  jobs::Service& service = context.jobs();
  std::vector<job::JobRecord> jobs;
  if (options.all) {
    if (!options.jobs.empty()) {
      return absl::InvalidArgumentError("--all stops every job; give no JOB with it");
    }
    MUSTER_RETURN_IF_ERROR(options.target.ToListSelection().status());
    MUSTER_ASSIGN_OR_RETURN(jobs, jobs::ActiveJobs(service, options.target.platform));
    if (jobs.empty()) out.PrintLine("No job is running.");
    return jobs;
  }
  if (options.jobs.empty()) {
    return absl::InvalidArgumentError("missing JOB; --all stops every job");
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  for (const std::string& reference : options.jobs) {
    MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, jobs::FindJob(service, reference, selection));
    if (job::IsFinal(job.state)) {
      out.PrintLine(absl::StrCat(job.id, " is not running: it is ", job::ToString(job.state)));
      continue;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// All jobs at once need consent even from a script.
absl::StatusOr<bool> MayStop(Context& context, const StopOptions& options) {
  if (options.all) {
    return DemandConsent(context.err(), options.yes, "Continue?", "nothing was stopped");
  }
  return AskConsent(context.err(), options.yes, "Continue?") != Consent::kRefused;
}

absl::StatusOr<int> Stop(Context& context, const StopOptions& options) {
  Terminal& out = context.out();
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(std::vector<job::JobRecord> jobs, FindJobs(context, options));
  if (jobs.empty()) return kSuccess;
  for (const job::JobRecord& job : jobs) {
    out.PrintLine(absl::StrCat("This stops ", job.id, " (", job::ToString(job.state), ", ",
                               base::Plural(job.tasks, "task"), ")"));
  }
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed, MayStop(context, options));
  if (!agreed) {
    out.PrintLine("Nothing was stopped.");
    return kSuccess;
  }
  int code = kSuccess;
  for (job::JobRecord& job : jobs) {
    const absl::Status stopped = jobs::StopJob(service, job, options.now);
    if (!stopped.ok()) {
      context.err().Error(absl::StrCat(job.id, ": ", stopped.message()));
      if (jobs::IsOutOfReach(service, job)) {
        context.err().Note(absl::StrCat("it may be running ", jobs::WhereIs(service, job),
                                        "; if that place no longer exists, `muster jobs rm ",
                                        job.id, "` removes it from this machine's list"));
      }
      code = kFailure;
      continue;
    }
    out.Print(Verdict(out, job));
  }
  return code;
}

}  // namespace

void AddStopCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("stop", "Stop jobs");
  auto options = std::make_shared<StopOptions>();
  command.Argument("JOB", &options->jobs, "The jobs");
  command.Flag("--all", &options->all,
               "Stop every unfinished job that was started from here; with --on, those there");
  command.Flag("-y,--yes", &options->yes, "Do not ask for confirmation");
  command.Flag("--now", &options->now, "Kill the tasks, without a grace period");
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return Stop(context, *options); });
}

}  // namespace muster::cli
