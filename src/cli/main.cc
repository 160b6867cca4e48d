#include "cli/main.h"

#include <signal.h>

#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/context.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "\nA JOB is a name, an id, or a unique prefix of either.\n"
    "Start with:  muster init custom > job.yaml && muster run job.yaml\n"
    "`muster help COMMAND` and `man muster` tell more.";

}  // namespace

int Fail(Context& context, const absl::Status& status) {
  context.out().Flush();
  context.err().Error(std::string(status.message()));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailure;
}

int Main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // `muster logs | head` ends by itself, without a message
  const auto context = Context::FromEnvironment();
  if (!context.ok()) {
    std::fprintf(stderr, "muster: error: %s\n", std::string(context.status().message()).c_str());
    return kFailure;
  }
  Command program("muster",
                  "muster: describe a training job once, run it on this machine, manage it");
  program.Version(MUSTER_VERSION);
  program.Footer(kFooter);
  for (const auto add :
       {AddInitCommand, AddRunCommand, AddShowCommand, AddJobsCommand, AddLogsCommand,
        AddStopCommand, AddResumeCommand, AddEnvCommand, AddDoctorCommand, AddHelpCommand,
        AddCompletionCommand, AddSuperviseCommand}) {
    add(program, **context);
  }
  const auto code = program.Run(argc, argv);
  if (!code.ok()) return Fail(**context, code.status());
  (*context)->out().Flush();
  return *code;
}

}  // namespace muster::cli
