// muster wait: waits until jobs have ended.
#include "jobs/control/wait.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/attach.h"
#include "cli/job/target_options.h"
#include "jobs/find/lookup.h"

namespace muster::cli {
namespace {

struct WaitOptions {
  std::vector<std::string> jobs;
  TargetOptions target;
  std::string timeout;
};

absl::StatusOr<int> Wait(Context& context, const WaitOptions& options) {
  absl::Time deadline = absl::InfiniteFuture();
  if (!options.timeout.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration timeout, base::ParseDuration(options.timeout));
    deadline = absl::Now() + timeout;
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  std::vector<job::JobRecord> jobs;  // all of them exist before the first wait
  for (const std::string& reference : options.jobs) {
    MUSTER_ASSIGN_OR_RETURN(job::JobRecord job,
                            jobs::FindJob(context.jobs(), reference, selection));
    jobs.push_back(std::move(job));
  }
  int code = kSuccess;
  for (job::JobRecord& job : jobs) {
    const absl::Status ended = jobs::WaitForJob(context.jobs(), job, deadline);
    if (absl::IsDeadlineExceeded(ended)) {
      return absl::DeadlineExceededError(
          absl::StrCat("timed out after ", options.timeout, ": ", ended.message()));
    }
    MUSTER_RETURN_IF_ERROR(ended);
    PrintVerdict(context, job);
    if (code == kSuccess) code = ExitCodeOf(job);
  }
  return code;
}

}  // namespace

void AddWaitCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("wait", "Wait until jobs have ended");
  auto options = std::make_shared<WaitOptions>();
  command.Argument("JOB", &options->jobs, "The jobs", Presence::kRequired);
  command.Option("--timeout", &options->timeout, "Fail after this time: 90s, 5m, 2h");
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return Wait(context, *options); });
}

}  // namespace muster::cli
