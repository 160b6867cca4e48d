// muster supervise: what `muster run` starts behind the scenes for each local job.
#include "launch/supervise.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "launch/job_dir.h"
#include "storage/copy.h"

namespace muster::cli {
namespace {

// Who keeps a model dir in another storage finds the logs there too: logs/<job>/.
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
      // Not from the environment: a relative MUSTER_HOME counted from where `run` was called.
      const auto jobs = std::filesystem::path(*directory).parent_path();
      return History::Open(jobs.parent_path().string(), options);
    };
    const int code = Supervise(*directory, STDIN_FILENO, open_history);
    if (::getpid() != guard) return code;
    if (const absl::Status sent = SendLogs(*directory); !sent.ok()) {
      context.err().Note(absl::StrCat("the logs could not be sent: ", sent.message()));
    }
    return code;
  });
}

}  // namespace muster::cli
