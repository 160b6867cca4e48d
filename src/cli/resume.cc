// muster resume: starts a new run of a finished job in the same model dir.
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/submit.h"
#include "cli/training.h"
#include "cli/vertex_options.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct ResumeOptions {
  std::string job;
  int64_t step = -1;
  bool detach = false;
};

absl::StatusOr<int> Resume(Context& context, const ResumeOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobRecord previous, FindJob(context, options.job));
  if (!IsFinal(previous.state) && IsOutOfReach(context, previous)) {
    return absl::FailedPreconditionError(OutOfReach(context, previous));
  }
  if (!IsFinal(previous.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat(previous.id, " is ", ToString(previous.state),
                     "; stop it before it is resumed: muster stop ", previous.id));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto later, RunningJob(context, previous.name));
  if (later.has_value() && IsOutOfReach(context, *later)) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a later run, ", OutOfReach(context, *later)));
  }
  if (later.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("a later run, ", later->id, ", is ",
                                                      ToString(later->state),
                                                      " in the same place; stop it first"));
  }
  // The stored submission has absolute paths, so the current directory does not matter.
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(previous.directory).LoadSubmission());
  if (options.step >= 0 && !submission.spec.train.is_null()) {
    MUSTER_RETURN_IF_ERROR(CheckCheckpoint(previous.model_dir, options.step));
  }
  if (previous.platform == "vertex") {
    MUSTER_RETURN_IF_ERROR(ChooseJobId(context, "", "train", submission));
  } else {
    submission.id = NewJobId(submission.spec.name);
  }
  submission.created = absl::Now();
  submission.resumed_from = previous.id;
  submission.resume_step = options.step >= 0 ? std::optional<int64_t>(options.step) : std::nullopt;
  if (auto trainer = context.FindTrainer(); trainer.ok()) submission.trainer = *std::move(trainer);
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(previous.platform));
  MUSTER_RETURN_IF_ERROR(CheckSupported(context, *platform, submission));
  MUSTER_RETURN_IF_ERROR(platform->Prepare(submission));
  MUSTER_RETURN_IF_ERROR(CheckRunnable(context, *platform, submission));
  // Checks the name again under the lock: another run may have started since RunningJob().
  MUSTER_ASSIGN_OR_RETURN(UniqueFd lock, LockSubmissions(context));
  MUSTER_ASSIGN_OR_RETURN(const bool free, IsNameFree(context, previous.name));
  if (!free) {
    return absl::FailedPreconditionError(
        absl::StrCat("a later run of ", previous.name, " has been started just now"));
  }
  const HeldInterrupts held;
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job,
                          SubmitJob(context, submission, previous.platform, std::move(lock)));
  const std::string where = job.model_dir.empty() ? "" : absl::StrCat(" in ", job.model_dir);
  context.err().Note(absl::StrCat("started ", job.id, ", which resumes ", previous.id, where));
  if (options.detach) return kSuccess;
  return Attach(context, job, {.owns_job = true});
}

}  // namespace

void AddResumeCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("resume", "Run a finished job again in its model dir");
  auto options = std::make_shared<ResumeOptions>();
  command.Argument("JOB", &options->job, "The job; a resumed one too", Presence::kRequired);
  command.Option("--from", &options->step,
                 "Step of the checkpoint to go on from (default: the last)");
  command.Flag("-d,--detach", &options->detach, "Start it in the background and return");
  command.OnCall([&context, options] { return Resume(context, *options); });
}

}  // namespace muster::cli
