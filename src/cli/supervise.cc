// muster supervise: the background process of a local or SSH job, started by `muster run`.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "history/history.h"
#include "jobs/results/send_logs.h"
#include "supervise/job_dir.h"
#include "supervise/main.h"

namespace muster::cli {
namespace {

// Returns the factory that asks the job's platform for its runner.
supervise::RunnerFactory RunnersOf(const platform::Registry& platforms) {
  return [&platforms](const supervise::JobDir& dir, const job::Submission& submission,
                      process::EventLoop& loop, supervise::RunnerEvents& events)
             -> absl::StatusOr<std::unique_ptr<supervise::Runner>> {
    const std::string name(job::PlatformOf(submission.target));
    MUSTER_ASSIGN_OR_RETURN(const platform::Registration* platform, platforms.RegistrationOf(name));
    if (platform->make_runner) return platform->make_runner(dir, submission, loop, events);
    return absl::FailedPreconditionError(
        absl::StrCat("jobs on ", name, " have no supervisor on this machine"));
  };
}

}  // namespace

void AddSuperviseCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("supervise", "Run a submitted job");
  command.Hide();
  auto directory = std::make_shared<std::string>();
  command.Argument("DIRECTORY", directory.get(), "", Presence::kRequired);
  command.OnCall([&context, directory]() -> absl::StatusOr<int> {
    const pid_t guard = ::getpid();
    const auto open_history = [&context,
                               directory]() -> absl::StatusOr<std::unique_ptr<job::EventSink>> {
      history::HistoryOptions options;
      options.notice = [&context](absl::string_view text) {
        context.err().Note(std::string(text));
      };
      // Derived from the job's folder: a relative MUSTER_HOME refers to the directory of `run`.
      const auto jobs = std::filesystem::path(*directory).parent_path();
      return history::History::Open(jobs.parent_path().string(), options);
    };
    const int code = supervise::Supervise(*directory, STDIN_FILENO, open_history,
                                          RunnersOf(context.platforms()));
    // Supervise() forks and returns in both processes. Only the parent, which outlives the
    // supervisor, copies the logs.
    if (::getpid() != guard) return code;
    if (const absl::Status sent = jobs::SendLogs(*directory); !sent.ok()) {
      context.err().Note(absl::StrCat("the logs could not be sent: ", sent.message()));
    }
    return code;
  });
}

}  // namespace muster::cli
