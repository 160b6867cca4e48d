#include "cli/main.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/spelling.h"
#include "cli/commands.h"
#include "cli/context.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "\nA JOB is a name, an id, or a unique prefix of either.\n"
    "Start with:  muster init custom > job.yaml && muster run job.yaml\n"
    "`muster help COMMAND` and `man muster` tell more.";

// CLI11 names the arguments it could not place; the nearest command is the better help.
std::string Explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    return absl::StrCat("unknown command '", argv[1], "'", DidYouMean(argv[1], names),
                        "; `muster help` lists them");
  }
  std::string text = error.what();
  if (!app.get_subcommands().empty()) {
    absl::StrAppend(&text, "; `muster help ", app.get_subcommands().front()->get_name(),
                    "` shows the usage");
  }
  return text;
}

}  // namespace

int Fail(Context& context, const absl::Status& status) {
  context.out().Flush();
  context.err().Error(std::string(status.message()));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailure;
}

int Main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // `muster logs | head` ends by itself, without a message
  auto context = Context::FromEnvironment();
  if (!context.ok()) {
    std::fprintf(stderr, "muster: error: %s\n", std::string(context.status().message()).c_str());
    return kFailure;
  }
  int exit_code = kSuccess;
  CLI::App app("muster: describe a training job once, run it on this machine, manage it", "muster");
  app.require_subcommand(1);
  app.set_version_flag("--version", MUSTER_VERSION);
  app.footer(kFooter);
  AddInitCommand(app, **context, exit_code);
  AddRunCommand(app, **context, exit_code);
  AddShowCommand(app, **context, exit_code);
  AddJobsCommand(app, **context, exit_code);
  AddLogsCommand(app, **context, exit_code);
  AddStopCommand(app, **context, exit_code);
  AddResumeCommand(app, **context, exit_code);
  AddEnvCommand(app, **context, exit_code);
  AddDoctorCommand(app, **context, exit_code);
  AddHelpCommand(app, **context, exit_code);
  AddCompletionCommand(app, **context, exit_code);
  AddSuperviseCommand(app, **context, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    (*context)->err().Error(Explain(app, error, argc, argv));
    return kUsage;
  }
  (*context)->out().Flush();
  return exit_code;
}

}  // namespace muster::cli
