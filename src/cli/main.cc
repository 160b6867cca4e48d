#include "cli/main.h"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/context.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "\nA JOB is a name, an id, or a unique prefix of either.\n"
    "Start with:  muster init custom > job.yaml && muster run job.yaml\n"
    "`muster help COMMAND` shows its options, `man muster` all of them.";

int Run(Context& context, int argc, char** argv) {
  Command program("muster",
                  "muster: distributed training from one job file, on this machine, on hosts over "
                  "SSH, on Kubernetes or on Vertex AI");
  program.Version(MUSTER_VERSION);
  program.Footer(kFooter);
  for (const auto add :
       {AddInitCommand,      AddRunCommand,       AddRenderCommand,  AddOperatorCommand,
        AddShowCommand,      AddJobsCommand,      AddLogsCommand,    AddStopCommand,
        AddResumeCommand,    AddEvaluateCommand,  AddPredictCommand, AddEnvCommand,
        AddNotebookCommand,  AddDataCommand,      AddDoctorCommand,  AddCheckpointCommand,
        AddStorageCommand,   AddExplainCommand,   AddHelpCommand,    AddCompletionCommand,
        AddSuperviseCommand, AddVertexTaskCommand}) {
    add(program, context);
  }
  const auto code = program.Run(argc, argv);
  return code.ok() ? *code : Fail(context, code.status());
}

// Reports a failed write to standard output. Ignores EPIPE: the reader chose to stop reading.
int CheckOutput(Context& context, int code) {
  context.out().Flush();
  const int error = context.out().error();
  if (error == 0 || error == EPIPE) return code;
  context.err().Error(absl::StrCat("cannot write to standard output: ", std::strerror(error)));
  return code == kSuccess ? kFailure : code;
}

}  // namespace

int Fail(Context& context, const absl::Status& status) {
  context.out().Flush();
  context.err().Error(std::string(status.message()));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailure;
}

int Main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // `muster logs | head` exits silently
  ::signal(SIGXFSZ, SIG_IGN);  // a write past RLIMIT_FSIZE fails with EFBIG instead
  const auto context = Context::FromEnvironment();
  if (!context.ok()) {
    std::fprintf(stderr, "muster: error: %s\n", std::string(context.status().message()).c_str());
    return kFailure;
  }
  // Last resort for exceptions of libraries that their adapters did not catch.
  try {
    return CheckOutput(**context, Run(**context, argc, argv));
  } catch (const std::exception& error) {
    (*context)->err().Error(absl::StrCat("internal error: ", error.what(), "; please report it"));
    return kFailure;
  }
}

}  // namespace muster::cli
