#include "cli/main.h"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/context.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "\nA JOB is a name, an id, or a unique prefix of either.\n"
    "Start with:  muster init custom > job.yaml && muster run job.yaml\n"
    "`muster help COMMAND` shows its options, `man muster` all of them.";

// Returns the titles of all platforms as a phrase: "A, B or C".
std::string PlatformTitles(Context& context) {
  std::vector<std::string> titles;
  for (const platform::Registration& one : context.platforms().registrations()) {
    titles.push_back(one.traits.title);
  }
  const std::string last = titles.back();
  titles.pop_back();
  return absl::StrCat(absl::StrJoin(titles, ", "), titles.empty() ? "" : " or ", last);
}

// Adds the hidden commands by which platforms run this program on their own machines.
void AddEntryPoints(Command& program, Context& context) {
  for (const platform::Registration& platform : context.platforms().registrations()) {
    for (const platform::EntryPoint& entry : platform.entry_points) {
      Command& command = program.AddCommand(entry.name, "");
      command.Hide();
      auto arguments = std::make_shared<std::vector<std::string>>(entry.arguments.size());
      for (size_t i = 0; i < entry.arguments.size(); ++i) {
        command.Argument(entry.arguments[i], &(*arguments)[i], "", Presence::kRequired);
      }
      command.OnCall([&entry, arguments]() -> absl::StatusOr<int> {
        MUSTER_RETURN_IF_ERROR(entry.run(*arguments));
        return kSuccess;
      });
    }
  }
}

// Answers the verbs of other programs with ours.
void AddAdvice(Command& program, Context& context) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> answers = {
      {{"ps", "ls", "list", "get"}, "`muster jobs` lists jobs, `muster show JOB` its tasks"},
      {{"status", "describe"}, "`muster show JOB` shows the state of a job and its tasks"},
      {{"kill", "cancel", "down", "terminate"},
       "`muster stop JOB` stops a job, `muster stop --now JOB` kills it"},
      {{"train", "start", "submit", "launch", "create", "apply", "up"},
       "`muster run FILE` starts the job of a file"},
      {{"rm", "delete", "remove", "forget"}, "`muster jobs rm JOB` removes a finished job"},
      {{"attach", "tail", "log"}, "`muster logs -f JOB` follows the output of a job"},
      {{"cloud", "gc"},
       absl::StrCat("`run`, `jobs`, `logs`, `stop` and `evaluate` take --on PLATFORM: ",
                    absl::StrJoin(context.platforms().names(), ", "))},
  };
  for (const auto& [words, answer] : answers) {
    for (const char* word : words) program.Advise(word, answer);
  }
}

int Run(Context& context, int argc, char** argv) {
  Command program("muster", absl::StrCat("muster: distributed training from one job file, on ",
                                         PlatformTitles(context)));
  program.Version(MUSTER_VERSION);
  program.Footer(kFooter);
  for (const auto add :
       {AddInitCommand,     AddRunCommand,     AddRenderCommand,  AddOperatorCommand,
        AddShowCommand,     AddJobsCommand,    AddTopCommand,     AddLogsCommand,
        AddStopCommand,     AddWaitCommand,    AddCompareCommand, AddResumeCommand,
        AddEvaluateCommand, AddPredictCommand, AddEnvCommand,     AddDashboardCommand,
        AddNotebookCommand, AddDataCommand,    AddDoctorCommand,  AddCheckpointCommand,
        AddStorageCommand,  AddExplainCommand, AddHelpCommand,    AddCompletionCommand,
        AddSuperviseCommand}) {
    add(program, context);
  }
  AddEntryPoints(program, context);
  AddAdvice(program, context);
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

int Main(int argc, char** argv, std::vector<platform::Registration> platforms) {
  ::signal(SIGPIPE, SIG_IGN);  // `muster logs | head` exits silently
  ::signal(SIGXFSZ, SIG_IGN);  // a write past RLIMIT_FSIZE fails with EFBIG instead
  const auto context = Context::FromEnvironment(std::move(platforms));
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
