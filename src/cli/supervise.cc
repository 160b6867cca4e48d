// muster supervise: what `muster run` starts behind the scenes for each local job.
#include <unistd.h>

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
    return local::Supervise(
        *directory, STDIN_FILENO, [&context]() -> absl::StatusOr<std::unique_ptr<EventSink>> {
          HistoryOptions options;
          options.notice = [&context](absl::string_view text) { context.err().Note(text); };
          return History::Open(context.home(), options);
        });
  });
}

}  // namespace muster::cli
