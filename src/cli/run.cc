// muster run: starts a job, or updates the running job of that name.
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/diff.h"
#include "cli/job_lookup.h"
#include "cli/submit.h"
#include "cli/target_options.h"
#include "cli/vertex_options.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

constexpr int kTries = 5;  // after a lost race for the name or the id

struct RunOptions {
  std::string file;
  std::vector<std::string> configs;  // merged, after `file`
  TargetOptions target{.platform = "local"};
  std::string trainer_image;
  VertexRunOptions vertex;
  bool fresh = false;
  bool detach = false;
  bool dry_run = false;
  bool yes = false;
  bool send_home = false;
};

std::string TaskNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, task.ToString());
  });
}

// Prints the tasks that a new job would start.
absl::Status ShowNewPlan(Context& context, const Platform& platform, const Submission& submission) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const ClusterSpec cluster, platform.Addresses(submission));
  Table table({"TASK", "ADDRESS", "DIRECTORY", "COMMAND"}, 3);
  for (const TaskId& task : submission.spec.Tasks()) {
    MUSTER_ASSIGN_OR_RETURN(const TaskLaunch launch, platform.LaunchOf(submission, cluster, task));
    const absl::string_view address = cluster.AddressOf(task);
    table.Add({task.ToString(), address == kUnassigned ? "picked at start" : std::string(address),
               launch.working_dir, ShellJoin(launch.argv)});
  }
  out.PrintLine(absl::StrCat("Would start a new job '", submission.spec.name, "' ",
                             platform.Describe(submission), ":\n"));
  out.Print(table.Render(out));
  return absl::OkStatus();
}

void ShowUpdatePlan(Terminal& out, const Submission& current, const Submission& next,
                    const UpdatePlan& plan) {
  const auto line = [&](const char* what, const std::vector<TaskId>& tasks) {
    if (!tasks.empty()) out.PrintLine(absl::StrCat("  ", what, TaskNames(tasks)));
  };
  out.Print(UnifiedDiff(out, current.source, next.source));
  out.PrintLine(absl::StrCat("Changes to ", current.id, ":"));
  if (current.working_dir != next.working_dir) {
    out.PrintLine(absl::StrCat("  working directory: ", next.working_dir, " instead of ",
                               current.working_dir));
  }
  line("restart: ", plan.restarted);
  line("start:   ", plan.added);
  line("stop:    ", plan.removed);
  line("keep:    ", plan.kept);
  if (plan.policies_changed) out.PrintLine("  policies change without a restart");
}

void SayWhatIsUseful(Terminal& out, const JobRecord& job) {
  out.PrintLine(absl::StrCat("Started ", job.id, " in the background."));
  out.PrintLine(absl::StrCat("  muster show ", job.id, "      its tasks"));
  out.PrintLine(absl::StrCat("  muster logs -f ", job.id, "   its output"));
  out.PrintLine(absl::StrCat("  muster stop ", job.id, "      end it"));
  out.Flush();
}

// A running job and its submission.
struct Running {
  JobRecord job;
  Submission submission;
};

// Returns the running job with the submission's name, or nullopt. Returns FailedPrecondition if the
// name is taken by a job whose state is unknown.
absl::StatusOr<std::optional<Running>> FindRunning(Context& context, const Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(const auto job, RunningJob(context, submission.spec.name));
  if (!job) return std::nullopt;
  if (IsUnmade(*job)) {
    if (job->id == submission.id) return std::nullopt;
    return absl::FailedPreconditionError(
        absl::StrCat(job->id, " may be running: ", job->reason, ". `muster show ", job->id,
                     "` looks for it, --job-id ", job->id, " takes its place, `muster jobs forget ",
                     job->id, "` gives it up"));
  }
  if (IsOutOfReach(context, *job)) {
    return absl::FailedPreconditionError(absl::StrCat("the name '", job->name, "' is taken by ",
                                                      OutOfReach(context, *job),
                                                      ", or give this job another name"));
  }
  MUSTER_ASSIGN_OR_RETURN(Submission current, JobDir(job->directory).LoadSubmission());
  return Running{*job, std::move(current)};
}

absl::Status NotNow(const Running& running, absl::string_view option) {
  return absl::FailedPreconditionError(
      absl::StrCat(option, " is for a new job, and ", running.job.id, " is running; stop it first ",
                   "(muster stop ", running.job.id, "), or give this job another name"));
}

// Fills unset fields of the submission's target from that of the running job.
void FillIn(const Running& running, Submission& submission) {
  submission.target = InheritTarget(running.submission.target, submission.target);
}

// Returns FailedPrecondition if the job of that name runs on another target: names are unique
// across platforms.
absl::Status CheckSameTarget(const Platform& platform, const Running& running,
                             const Submission& submission) {
  std::string where = absl::StrCat("on ", running.job.platform);
  if (running.job.platform == platform.name()) {
    where = platform.Describe(running.submission);
    if (where == platform.Describe(submission)) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(running.job.id, " is running ", where,
                                                    "; stop it first (muster stop ", running.job.id,
                                                    "), or give this job another name"));
}

absl::StatusOr<int> ChangeRunningJob(Context& context, const RunOptions& options,
                                     const Running& running, const Submission& next) {
  Terminal& out = context.out();
  const JobRecord& job = running.job;
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const UpdatePlan plan, platform->PlanUpdate(job, tasks, next));
  if (plan.empty()) {
    out.PrintLine(absl::StrCat(job.id, " is running and nothing changed; `muster logs -f ", job.id,
                               "` follows it"));
    return kSuccess;
  }
  MUSTER_RETURN_IF_ERROR(CheckRunnable(context, *platform, next));
  ShowUpdatePlan(out, running.submission, next, plan);
  if (options.dry_run) return kSuccess;
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed,
                          DemandConsent(context.err(), options.yes, "Apply these changes?",
                                        absl::StrCat(job.id, " is running and was not changed")));
  if (!agreed) {
    out.PrintLine("Nothing was changed.");
    return kSuccess;
  }
  const absl::Time before = absl::Now();
  MUSTER_RETURN_IF_ERROR(platform->Update(job, next));
  out.PrintLine(absl::StrCat("Changed ", job.id, "."));
  out.Flush();
  if (options.detach) return kSuccess;
  AttachOptions attach{.owns_job = true};
  MUSTER_ASSIGN_OR_RETURN(auto stream, platform->Logs(job, next.spec.Tasks()));
  stream->SeekTime(before);
  return Attach(context, job, attach, std::move(stream));
}

absl::StatusOr<Submission> Load(Context& context, const RunOptions& options) {
  std::vector<std::string> files = options.configs;
  if (!options.file.empty()) files.insert(files.begin(), options.file);
  if (files.empty()) return absl::InvalidArgumentError("which job? Name its file: muster run FILE");
  return LoadSubmission(context, files);
}

absl::StatusOr<int> StartJob(Context& context, const RunOptions& options,
                             const Submission& submission, UniqueFd lock) {
  const HeldInterrupts held;
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job,
                          SubmitJob(context, submission, options.target.platform, std::move(lock)));
  if (options.detach) {
    SayWhatIsUseful(context.out(), job);
    return kSuccess;
  }
  context.err().Note(absl::StrCat("started ", job.id, "; Ctrl-C stops it"));
  return Attach(context, job, {.owns_job = true});
}

// Makes one attempt. Returns nullopt if another process took the name or the id in the meantime;
// the caller then retries, and may find a running job to update.
absl::StatusOr<std::optional<int>> TryRun(Context& context, const RunOptions& options,
                                          Submission submission) {
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(options.target.platform));
  MUSTER_RETURN_IF_ERROR(
      ApplyVertexOptions(context, options.target.platform, options.vertex, submission));
  std::optional<Running> running;
  {
    // Waits for a concurrent submitter, which holds the lock until Submit() has returned unless the
    // platform is slow.
    MUSTER_ASSIGN_OR_RETURN(const UniqueFd lock, LockSubmissions(context));
    MUSTER_ASSIGN_OR_RETURN(running, FindRunning(context, submission));
  }
  if (running.has_value() && running->job.platform == platform->name()) {
    if (!options.vertex.job_id.empty()) return NotNow(*running, "--job-id");
    FillIn(*running, submission);
  }
  if (running.has_value() && options.fresh) return NotNow(*running, "--fresh");
  FillInJobId(running.has_value() ? running->job.id : submission.id, submission);
  MUSTER_RETURN_IF_ERROR(CheckSupported(context, *platform, submission));
  MUSTER_RETURN_IF_ERROR(platform->Prepare(submission));
  if (running.has_value()) {
    MUSTER_RETURN_IF_ERROR(CheckSameTarget(*platform, *running, submission));
    return ChangeRunningJob(context, options, *running, submission);
  }
  const absl::Status runnable = CheckRunnable(context, *platform, submission);
  if (!options.dry_run) MUSTER_RETURN_IF_ERROR(runnable);
  if (options.dry_run) {
    if (!runnable.ok()) context.err().Note(absl::StrCat("it would fail: ", runnable.message()));
    MUSTER_RETURN_IF_ERROR(ShowNewPlan(context, *platform, submission));
    return kSuccess;
  }
  // The lock is not held during Prepare() and the checks above, which may contact the platform. So
  // the name and the id must be checked again.
  MUSTER_ASSIGN_OR_RETURN(UniqueFd lock, LockSubmissions(context));
  MUSTER_ASSIGN_OR_RETURN(const bool named, IsNameFree(context, submission.spec.name));
  if (!named) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const bool taken, TakeId(context, submission));
  if (!taken) return std::nullopt;
  return StartJob(context, options, submission, std::move(lock));
}

absl::StatusOr<int> Run(Context& context, const RunOptions& options) {
  MUSTER_RETURN_IF_ERROR(context.platform(options.target.platform).status());
  MUSTER_RETURN_IF_ERROR(options.target.Check());
  if (!options.trainer_image.empty() && options.target.platform != "kubernetes") {
    return absl::InvalidArgumentError(
        "--trainer-image is for jobs on Kubernetes (--on kubernetes); on Vertex AI it is --image");
  }
  MUSTER_ASSIGN_OR_RETURN(Submission submission, Load(context, options));
  if (options.fresh) {
    if (submission.spec.train.is_null()) {
      return absl::InvalidArgumentError(
          "--fresh is for jobs of the built-in trainer; this one has no `train` section");
    }
    submission.resume_step = 0;
  }
  submission.target = options.target.ToTarget();
  submission.send_home = options.send_home;
  if (!options.trainer_image.empty()) {
    MutableTargetOf<KubernetesTarget>(submission).trainer_image = options.trainer_image;
  }
  for (int i = 0; i < kTries; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const auto code, TryRun(context, options, submission));
    if (code) return *code;
  }
  return absl::UnavailableError(
      absl::StrCat("others start jobs called '", submission.spec.name, "' all the time"));
}

}  // namespace

void AddRunCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("run", "Start a job, or change the running one of that name");
  auto options = std::make_shared<RunOptions>();
  command.Argument("FILE", &options->file, "The job file; - reads standard input");
  command.Option("-c,--config", &options->configs,
                 "A job file; several are joined, and what a later one says wins");
  AddTargetOptions(command, &options->target);
  command.Group(kSshGroup);
  command.Option("--hosts", &options->target.hosts,
                 "The hosts, with slots where several tasks may share one: vm1,me@gpu1:4");
  command.Group(kKubernetesGroup);
  command.Option("--trainer-image", &options->trainer_image, "The image of the built-in trainer");
  AddVertexJobOptions(command, &options->vertex);
  AddVertexTrainOptions(command, &options->vertex);
  command.Flag("--send-home", &options->send_home,
               "SSH, Vertex: send the working directory even when it is your home folder or /");
  command.Flag("--fresh", &options->fresh,
               "Train from step 0: move what an earlier run left in the model dir aside");
  command.Flag("-d,--detach", &options->detach, "Start it in the background and return");
  command.Flag("--dry-run", &options->dry_run, "Show what would happen, and do nothing");
  command.Flag("-y,--yes", &options->yes, "Change a running job without asking");
  command.OnCall([&context, options] { return Run(context, *options); });
}

}  // namespace muster::cli
