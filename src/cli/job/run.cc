// muster run: starts a job, or updates the running job of that name.
#include "jobs/start/run.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/attach.h"
#include "cli/job/dashboard.h"
#include "cli/job/diff.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "jobs/start/images.h"
#include "platform/capabilities.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

constexpr int kTries = 5;  // after a lost race for the name or the id

struct RunOptions {
  std::string file;
  std::vector<std::string> configs;  // merged, after `file`
  job::Overrides overrides;
  TargetOptions target;
  bool fresh = false;
  bool restart = false;
  bool detach = false;
  bool quiet = false;
  bool no_follow = false;
  bool dry_run = false;
  bool yes = false;
  bool send_home = false;
  bool dashboard = false;
};

std::string TaskNames(const std::vector<cluster::TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const cluster::TaskId& task) {
    absl::StrAppend(out, task.ToString());
  });
}

// Prints the tasks that a new job would start.
absl::Status ShowNewPlan(Context& context, const job::Submission& submission) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          context.jobs().platform(std::string(job::PlatformOf(submission.target))));
  MUSTER_ASSIGN_OR_RETURN(const cluster::ClusterSpec cluster, platform->Addresses(submission));
  Table table({"TASK", "ADDRESS", "DIRECTORY", "COMMAND"}, 3);
  for (const cluster::TaskId& task : submission.spec.Tasks()) {
    MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch launch,
                            platform->LaunchOf(submission, cluster, task));
    const absl::string_view address = cluster.AddressOf(task);
    table.Add({task.ToString(),
               address == platform::kUnassigned ? "picked at start" : std::string(address),
               launch.working_dir,
               job::DescribeCommand(*submission.spec.FindRole(task.role), launch)});
  }
  out.PrintLine(absl::StrCat("Would start a new job '", submission.spec.name, "' ",
                             job::DescribeTarget(submission.target), ":\n"));
  out.Print(table.Render(out));
  const auto* selection = platform::CapabilityOf<platform::FileSelection>(*platform);
  if (selection == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string files, selection->DescribeFiles(submission));
  if (!files.empty()) out.PrintLine(absl::StrCat("\n", files));
  return absl::OkStatus();
}

// Prints the files of the working directory that were edited, with their differences.
void PrintEditedFiles(Terminal& out, const std::vector<jobs::EditedFile>& files) {
  constexpr size_t kMaxListed = 50;
  using Kind = worktree::FileChange::Kind;
  for (size_t i = 0; i < std::min(files.size(), kMaxListed); ++i) {
    const auto& [change, before, after] = files[i];
    out.PrintLine(absl::StrCat(change.kind == Kind::kAdded     ? "added: "
                               : change.kind == Kind::kRemoved ? "removed: "
                                                               : "changed: ",
                               change.path));
    if (before || after) out.Print(UnifiedDiff(out, before.value_or(""), after.value_or("")));
  }
  if (files.size() > kMaxListed) {
    out.PrintLine(absl::StrCat("and ", files.size() - kMaxListed, " more files"));
  }
}

// Prints the images that would be pushed.
void ShowImages(Context& context, const job::Submission& submission) {
  const auto absent =
      jobs::AbsentImages(context.jobs(), jobs::ImagesOf(context.jobs(), submission));
  if (!absent.ok()) {
    context.err().Note(absl::StrCat("the job would fail: ", absent.status().message()));
    return;
  }
  for (const platform::Image& image : *absent) {
    context.out().PrintLine(absl::StrCat("Would push ", image.Reference(), "."));
  }
}

void ShowUpdatePlan(Terminal& out, const jobs::RunPlan& plan) {
  const job::Submission& current = plan.running->submission;
  const job::Submission& next = plan.submission;
  const auto line = [&](const char* what, const std::vector<cluster::TaskId>& tasks) {
    if (!tasks.empty()) out.PrintLine(absl::StrCat("  ", what, TaskNames(tasks)));
  };
  const jobs::SourceTexts sources = jobs::SourcesOf(plan);
  out.Print(UnifiedDiff(out, sources.current, sources.next));
  PrintEditedFiles(out, plan.edited.files);
  out.PrintLine(absl::StrCat("Changes to ", current.id, ":"));
  if (current.working_dir != next.working_dir) {
    out.PrintLine(absl::StrCat("  working directory: ", next.working_dir, " instead of ",
                               current.working_dir));
  }
  line("restart: ", plan.update.restarted);
  line("start:   ", plan.update.added);
  line("stop:    ", plan.update.removed);
  line("keep:    ", plan.update.kept);
  if (plan.update.policies_changed) out.PrintLine("  policies change without a restart");
}

void PrintNextCommands(Terminal& out, const job::JobRecord& job) {
  out.PrintLine(absl::StrCat("Started ", job.id, " in the background."));
  out.PrintLine(absl::StrCat("  muster show ", job.id, "      its tasks"));
  out.PrintLine(absl::StrCat("  muster logs -f ", job.id, "   its output"));
  out.PrintLine(absl::StrCat("  muster stop ", job.id, "      stop it"));
  out.Flush();
}

// Follows a job; its output from `begin` on.
absl::StatusOr<int> FollowFrom(Context& context, const job::JobRecord& job, absl::Time begin,
                               const AttachOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.jobs().history());
  MUSTER_ASSIGN_OR_RETURN(const auto records, history->Tasks(job.id));
  std::vector<cluster::TaskId> tasks;
  for (const job::TaskRecord& record : records) tasks.push_back(record.id);
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, context.jobs().platform(job.platform));
  MUSTER_ASSIGN_OR_RETURN(auto stream, platform->Logs(job, tasks));
  stream->SeekTime(begin);
  return Attach(context, job, options, std::move(stream));
}

// Handles a job that runs as the file says. This command has not started it, so Ctrl-C leaves it
// running.
absl::StatusOr<int> KeepRunningJob(Context& context, const RunOptions& options,
                                   const job::JobRecord& job) {
  if (options.quiet) {
    context.out().PrintLine(job.id);
    return kSuccess;
  }
  if (options.detach || options.no_follow || options.dry_run) {
    context.out().PrintLine(absl::StrCat(
        job.id, " is running and nothing changed; `muster logs -f ", job.id, "` follows it"));
    return kSuccess;
  }
  const process::HeldSignals held({SIGINT});  // until Attach() reads it
  context.err().Note(absl::StrCat(job.id,
                                  " is running and nothing changed; following it from now "
                                  "on (Ctrl-C leaves it running)"));
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.jobs().history());
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(job.id));
  return FollowFrom(context, job, absl::Now(),
                    {.after_event = events.empty() ? 0 : events.back().sequence});
}

absl::StatusOr<int> ChangeRunningJob(Context& context, const RunOptions& options,
                                     const jobs::RunPlan& plan) {
  Terminal& out = context.out();
  const job::JobRecord& job = plan.running->job;
  if (plan.update.empty()) return KeepRunningJob(context, options, job);
  if (!options.quiet) ShowUpdatePlan(out, plan);
  if (options.dry_run) {
    ShowImages(context, plan.submission);
    return kSuccess;
  }
  out.Flush();
  MUSTER_ASSIGN_OR_RETURN(const bool agreed,
                          DemandConsent(context.err(), options.yes, "Apply these changes?",
                                        absl::StrCat(job.id, " is running and was not changed")));
  if (!agreed) {
    out.PrintLine("Nothing was changed.");
    return kSuccess;
  }
  const absl::Time before = absl::Now();
  MUSTER_RETURN_IF_ERROR(jobs::ApplyPlanned(context.jobs(), plan));
  out.PrintLine(options.quiet ? job.id : absl::StrCat("Changed ", job.id, "."));
  out.Flush();
  if (options.detach) return kSuccess;
  return FollowFrom(context, job, before, {.owns_job = true});
}

// Returns nullopt if another process took the name or the id in the meantime.
absl::StatusOr<std::optional<int>> StartJob(Context& context, const RunOptions& options,
                                            const jobs::RunPlan& plan) {
  if (options.dry_run) {
    if (!plan.runnable.ok()) {
      context.err().Note(absl::StrCat("the job would fail: ", plan.runnable.message()));
    }
    MUSTER_RETURN_IF_ERROR(ShowNewPlan(context, plan.submission));
    ShowImages(context, plan.submission);
    return kSuccess;
  }
  // From here until Attach() reads the signal, Ctrl-C would leave the job running.
  const process::HeldSignals held({SIGINT});
  MUSTER_ASSIGN_OR_RETURN(const auto job, jobs::StartPlanned(context.jobs(), plan));
  if (!job) return std::nullopt;
  if (options.quiet) {
    context.out().PrintLine(job->id);
  } else if (options.detach) {
    PrintNextCommands(context.out(), *job);
  }
  if (options.detach) return kSuccess;
  context.err().Note(absl::StrCat("started ", job->id, "; Ctrl-C stops it"));
  std::unique_ptr<dashboard::Dashboard> dashboard;
  if (options.dashboard) {
    MUSTER_ASSIGN_OR_RETURN(dashboard, StartDashboard(context, {}, job->id));
  }
  return Attach(context, *job, {.owns_job = true});
}

absl::StatusOr<jobs::RunRequest> MakeRequest(Context& context, const RunOptions& options) {
  MUSTER_RETURN_IF_ERROR(context.platforms().RegistrationOf(options.target.platform).status());
  MUSTER_ASSIGN_OR_RETURN(const job::Target target, options.target.ToTarget());
  std::vector<std::string> files = options.configs;
  if (!options.file.empty()) files.insert(files.begin(), options.file);
  if (files.empty()) return absl::InvalidArgumentError("missing job file; usage: muster run FILE");
  jobs::RunRequest request{.fresh = options.fresh, .restart = options.restart};
  MUSTER_ASSIGN_OR_RETURN(request.submission, LoadJobFiles(context, files, options.overrides));
  request.submission.target = target;
  request.submission.send_home = options.send_home;
  if (const platform::Options* of_platform = options.target.Of(options.target.platform)) {
    request.job_id = of_platform->job_id();
    request.submission.resumed_from = of_platform->resumes();
  }
  return request;
}

absl::StatusOr<int> Run(Context& context, const RunOptions& options) {
  if (options.quiet && !options.detach) return QuietNeedsDetach();
  if (options.dashboard && options.detach) {
    return absl::InvalidArgumentError(
        "--dashboard ends with this command; with --detach, run `muster dashboard` afterwards");
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::RunRequest request, MakeRequest(context, options));
  for (int i = 0; i < kTries; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const jobs::RunPlan plan, jobs::PlanRun(context.jobs(), request));
    if (plan.running) return ChangeRunningJob(context, options, plan);
    MUSTER_ASSIGN_OR_RETURN(const auto code, StartJob(context, options, plan));
    if (code) return *code;
  }
  return absl::UnavailableError(absl::StrCat("other processes keep starting jobs called '",
                                             request.submission.spec.name, "'; try again"));
}

}  // namespace

void AddRunCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("run", "Start a job, or change the running one of that name");
  auto options = std::make_shared<RunOptions>();
  command.Argument("FILE", &options->file, "The job file; - reads standard input");
  command.Option("-c,--config", &options->configs,
                 "A job file; several are merged, and later ones take precedence");
  AddOverrideOptions(command, &options->overrides);
  options->target.platform = context.platforms().names().front();
  options->target.AddTo(command, context, platform::OptionUse::kRun);
  command.Flag("--send-home", &options->send_home,
               "Send the working directory to other machines even if it is your home folder or /");
  command.Flag("--fresh", &options->fresh,
               "Train from step 0: move the files of an earlier run in the model dir aside");
  command.Flag("--restart", &options->restart,
               "Restart all tasks of a running job, even if nothing changed");
  command.Flag("-d,--detach", &options->detach, "Start the job in the background and return");
  command.Flag("-q,--quiet", &options->quiet, "With -d: print only the id of the job");
  command.Flag("--no-follow", &options->no_follow,
               "Return at once if the job of that name already runs unchanged");
  command.Flag("--dashboard", &options->dashboard,
               "Show the new job in a browser while this command follows it");
  command.Flag("--dry-run", &options->dry_run, "Show the plan and change nothing");
  command.Flag("-y,--yes", &options->yes, "Change a running job without asking");
  command.OnCall([&context, options] { return Run(context, *options); });
}

}  // namespace muster::cli
