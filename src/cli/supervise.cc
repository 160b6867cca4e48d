// muster supervise: what `muster run` starts behind the scenes for each local job.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/commands.h"
#include "launch/local/supervisor.h"

namespace muster::cli {

void AddSuperviseCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("supervise", "Run a submitted job");
  command.Hide();
  auto directory = std::make_shared<std::string>();
  command.Argument("DIRECTORY", directory.get(), "", Presence::kRequired);
  command.OnCall([&context, directory]() -> absl::StatusOr<int> {
    return local::Supervise(*directory, STDIN_FILENO,
                            [&context, directory]() -> absl::StatusOr<std::unique_ptr<EventSink>> {
                              HistoryOptions options;
                              options.notice = [&context](absl::string_view text) {
                                context.err().Note(text);
                              };
                              // Not from the environment: a relative MUSTER_HOME counted from where
                              // `run` was called.
                              const auto jobs = std::filesystem::path(*directory).parent_path();
                              return History::Open(jobs.parent_path().string(), options);
                            });
  });
}

}  // namespace muster::cli
