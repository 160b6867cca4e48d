// muster resume: starts a new run of a finished job in the same model dir.
#include "jobs/start/resume.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/attach.h"
#include "jobs/find/lookup.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

struct ResumeOptions {
  std::string job;
  int64_t step = -1;
  bool detach = false;
  bool quiet = false;
};

absl::StatusOr<int> Resume(Context& context, const ResumeOptions& options) {
  if (options.quiet && !options.detach) return QuietNeedsDetach();
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord previous, jobs::FindJob(service, options.job));
  const auto step = options.step >= 0 ? std::optional<int64_t>(options.step) : std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          jobs::PlanResume(service, previous, step));
  const process::HeldSignals held({SIGINT});
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, jobs::StartResumed(service, submission));
  if (options.quiet) {
    context.out().PrintLine(job.id);
    return kSuccess;
  }
  const std::string where = job.model_dir.empty() ? "" : absl::StrCat(" in ", job.model_dir);
  context.err().Note(absl::StrCat("started ", job.id, ", which resumes ", previous.id, where));
  if (options.detach) return kSuccess;
  return Attach(context, job, {.owns_job = true});
}

}  // namespace

void AddResumeCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("resume", "Run a finished job again in its model dir");
  auto options = std::make_shared<ResumeOptions>();
  command.Argument("JOB", &options->job, "The job, which may itself be a resumed one",
                   Presence::kRequired);
  command.Option("--from", &options->step,
                 "The step of the checkpoint to resume from (default: the latest)");
  command.Flag("-d,--detach", &options->detach, "Start the job in the background and return");
  command.Flag("-q,--quiet", &options->quiet, "With -d: print only the id of the job");
  command.OnCall([&context, options] { return Resume(context, *options); });
}

}  // namespace muster::cli
