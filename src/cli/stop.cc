// muster stop: stops jobs.
#include <poll.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/target_options.h"

namespace muster::cli {
namespace {

struct StopOptions {
  std::vector<std::string> jobs;
  TargetOptions target;
  bool yes = false;
  bool now = false;
};

// Reloads and refreshes the record.
absl::Status LookAgain(Context& context, JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  return Refresh(context, job);
}

// Waits until the watch closes or the platform reports the job gone, then refreshes the record.
absl::Status WaitForEnd(Context& context, Platform& platform, JobRecord& job) {
  auto watch = platform.Watch(job);
  while (watch.ok()) {
    pollfd waiting{.fd = (*watch)->fd(), .events = POLLIN};
    ::poll(&waiting, 1, 1000);
    if (waiting.revents != 0 && !(*watch)->Drain()) break;
    if (platform.Check(job) == Liveness::kGone) break;
  }
  return LookAgain(context, job);
}

absl::StatusOr<int> Stop(Context& context, const StopOptions& options) {
  Terminal& out = context.out();
  std::vector<JobRecord> jobs;
  for (const std::string& reference : options.jobs) {
    MUSTER_ASSIGN_OR_RETURN(JobRecord job, FindJob(context, reference, options.target));
    if (IsFinal(job.state)) {
      out.PrintLine(absl::StrCat(job.id, " is not running: it is ", ToString(job.state)));
      continue;
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) return kSuccess;
  for (const JobRecord& job : jobs) {
    out.PrintLine(absl::StrCat("Stops ", job.id, " (", ToString(job.state), ", ",
                               Plural(job.tasks, "task"), ")"));
  }
  out.Flush();
  if (AskConsent(context.err(), options.yes, "Continue?") == Consent::kRefused) {
    out.PrintLine("Nothing was stopped.");
    return kSuccess;
  }
  int code = kSuccess;
  for (JobRecord& job : jobs) {
    MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
    const absl::Status asked = platform->Stop(job, options.now);
    // A failed Stop() may mean that the job has just ended, so the record is checked before the
    // error is reported.
    MUSTER_RETURN_IF_ERROR(asked.ok() ? WaitForEnd(context, *platform, job)
                                      : LookAgain(context, job));
    if (!IsFinal(job.state)) {
      context.err().Error(absl::StrCat(job.id, ": ", asked.ok() ? "did not end" : asked.message()));
      if (IsOutOfReach(context, job)) {
        context.err().Note(absl::StrCat("it may be running ", WhereIs(context, job),
                                        "; if that is gone for good, `muster jobs forget ", job.id,
                                        "` removes it from the list here"));
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
  Command& command = program.AddCommand("stop", "End jobs");
  auto options = std::make_shared<StopOptions>();
  command.Argument("JOB", &options->jobs, "The jobs", Presence::kRequired);
  command.Flag("-y,--yes", &options->yes, "Do not ask");
  command.Flag("--now", &options->now, "Without a grace period");
  AddTargetOptions(command, &options->target);
  command.OnCall([&context, options] { return Stop(context, *options); });
}

}  // namespace muster::cli
