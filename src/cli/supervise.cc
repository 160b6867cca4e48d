// muster supervise: the background process of a local or SSH job, started by `muster run`.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "platform/local/runner.h"
#include "platform/ssh/runner.h"
#include "storage/copy.h"
#include "supervise/job_dir.h"
#include "supervise/main.h"

namespace muster::cli {
namespace {

// Copies the logs to logs/<job>/ in a remote model dir. Does nothing for a local one.
absl::Status SendLogs(const std::string& directory) {
  const JobDir job(directory);
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, job.LoadSubmission());
  if (!storage::IsRemote(submission.spec.model_dir)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const storage::Url place, storage::ParseUrl(submission.spec.model_dir));
  const storage::Url to =
      place.Child("logs").Child(std::filesystem::path(directory).filename().string());
  const storage::Url from = storage::LocalUrl(job.logs()).AsFolder();
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * here, storage.For(from));
  MUSTER_ASSIGN_OR_RETURN(const auto logs, here->List(from, storage::Depth::kHere));
  std::vector<storage::CopyPair> pairs;
  pairs.reserve(logs.size());
  for (const auto& log : logs) pairs.push_back({log, to.Child(log.url.Basename())});
  return storage::CopyFiles(storage, pairs);
}

absl::StatusOr<std::unique_ptr<Runner>> MakeRunner(const JobDir& dir, const Submission& submission,
                                                   EventLoop& loop, RunnerEvents& events) {
  if (std::holds_alternative<SshTarget>(submission.target)) {
    return ssh::SshRunner::Create(dir, submission, loop, events);
  }
  return std::make_unique<local::LocalRunner>(dir, submission.id, loop, events);
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
                               directory]() -> absl::StatusOr<std::unique_ptr<EventSink>> {
      HistoryOptions options;
      options.notice = [&context](absl::string_view text) { context.err().Note(text); };
      // Derived from the job's folder: a relative MUSTER_HOME refers to the directory of `run`.
      const auto jobs = std::filesystem::path(*directory).parent_path();
      return History::Open(jobs.parent_path().string(), options);
    };
    const int code = Supervise(*directory, STDIN_FILENO, open_history, MakeRunner);
    // Supervise() forks and returns in both processes. Only the parent, which outlives the
    // supervisor, copies the logs.
    if (::getpid() != guard) return code;
    if (const absl::Status sent = SendLogs(*directory); !sent.ok()) {
      context.err().Note(absl::StrCat("the logs could not be sent: ", sent.message()));
    }
    return code;
  });
}

}  // namespace muster::cli
