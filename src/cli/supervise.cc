// muster supervise: what `muster run` starts behind the scenes for each local job.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "launch/local/supervisor.h"

namespace muster::cli {

void AddSuperviseCommand(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* command = app.add_subcommand("supervise", "Run a submitted job");
  command->group("");  // not for people, so not in the help
  auto directory = std::make_shared<std::string>();
  command->add_option("DIRECTORY", *directory)->required();
  command->callback([&context, &exit_code, directory] {
    exit_code = local::Supervise(
        *directory, STDIN_FILENO, [&context]() -> absl::StatusOr<std::unique_ptr<EventSink>> {
          HistoryOptions options;
          options.notice = [&context](absl::string_view text) { context.err().Note(text); };
          return History::Open(context.home(), options);
        });
  });
}

}  // namespace muster::cli
