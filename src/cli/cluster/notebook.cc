// muster notebook: prints how to reach the notebook of a job.
#include "jobs/control/notebook.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "jobs/find/lookup.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct NotebookCommand {
  std::string job;
  TargetOptions target;
};

// Returns the submission of a job, or of a job file, which has no id.
absl::StatusOr<job::Submission> SubmissionOf(Context& context, const NotebookCommand& command) {
  if (IsFile(context, command.job)) {
    MUSTER_ASSIGN_OR_RETURN(job::Submission submission, LoadJobFile(context, command.job));
    MUSTER_ASSIGN_OR_RETURN(submission.target, command.target.ToTarget());
    submission.id.clear();
    return submission;
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, command.target.ToSelection());
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job,
                          jobs::FindJob(context.jobs(), command.job, selection));
  return supervise::JobDir(job.directory).LoadSubmission();
}

void PrintPorts(Terminal& out, const platform::NotebookAccess& access, const std::string& host) {
  for (const platform::NotebookAccess::Port& port : access.ports) {
    out.PrintLine(absl::StrCat("  ", port.name == "tensorboard" ? "TensorBoard" : "notebook",
                               "  http://", host, ":", port.number));
  }
}

absl::StatusOr<int> ShowNotebook(Context& context, NotebookCommand& command) {
  std::string& platform = command.target.platform;
  if (platform.empty()) platform = jobs::NotebookPlatform(context.jobs());
  // Checked first: a platform without notebooks is not searched for the job.
  MUSTER_RETURN_IF_ERROR(jobs::CheckHasNotebooks(context.jobs(), platform));
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, SubmissionOf(context, command));
  MUSTER_ASSIGN_OR_RETURN(const platform::NotebookAccess access,
                          jobs::FindNotebook(context.jobs(), submission));
  Terminal& out = context.out();
  out.PrintLine(absl::StrCat(access.name, access.ready ? " is ready." : " is starting."));
  if (access.address.empty()) {
    out.PrintLine(absl::StrCat("To reach it from this machine, run\n  ",
                               base::ShellJoin(access.forward), "\nand open"));
  }
  PrintPorts(out, access, access.address.empty() ? "localhost" : access.address);
  if (access.has_password) {
    out.PrintLine("The password is the job file's.");
  } else {
    out.PrintLine(absl::StrCat("It has no password; its log holds the token:\n  ",
                               base::ShellJoin(access.logs)));
  }
  return kSuccess;
}

}  // namespace

void AddNotebookCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("notebook", "Print how to reach the notebook of a job");
  auto options = std::make_shared<NotebookCommand>();
  command.Argument("JOB", &options->job, "A job, or the job file", Presence::kRequired);
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return ShowNotebook(context, *options); });
}

}  // namespace muster::cli
