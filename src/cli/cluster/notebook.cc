#include "cli/cluster/notebook.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "cli/job/job_file.h"
#include "jobs/control/notebook.h"
#include "jobs/find/lookup.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

void PrintPorts(Terminal& out, const platform::NotebookAccess& access, const std::string& host) {
  for (const platform::NotebookAccess::Port& port : access.ports) {
    out.PrintLine(absl::StrCat("  ", port.name == "tensorboard" ? "TensorBoard" : "notebook",
                               "  http://", host, ":", port.number));
  }
}

}  // namespace

absl::StatusOr<job::Submission> ClusterSubmission(Context& context, const std::string& reference,
                                                  const TargetOptions& target) {
  if (IsFile(context, reference)) {
    MUSTER_ASSIGN_OR_RETURN(job::Submission submission, LoadJobFile(context, reference));
    MUSTER_ASSIGN_OR_RETURN(submission.target, target.ToTarget());
    submission.id.clear();
    return submission;
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, target.ToSelection());
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job,
                          jobs::FindJob(context.jobs(), reference, selection));
  return supervise::JobDir(job.directory).LoadSubmission();
}

absl::StatusOr<int> ShowClusterNotebook(Context& context, const job::Submission& submission) {
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

}  // namespace muster::cli
