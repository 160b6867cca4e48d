// muster vertex-task: the entry point of every container of a job on Vertex AI.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/task.h"
#include "process/signals.h"
#include "process/spawn.h"

namespace muster::cli {
namespace {

// Replaces this process with the task. Returns only on failure.
absl::Status Become(const TaskLaunch& launch) {
  std::map<std::string, std::string> env = CurrentEnvironment();
  for (const auto& [name, value] : launch.env) env[name] = value;
  MUSTER_ASSIGN_OR_RETURN(const std::string program,
                          FindProgram(launch.argv.front(), env, launch.working_dir));
  std::vector<std::string> entries;
  entries.reserve(env.size());
  for (const auto& [name, value] : env) entries.push_back(absl::StrCat(name, "=", value));
  std::vector<std::string> words = launch.argv;
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& entry : entries) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  if (::chdir(launch.working_dir.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, launch.working_dir);
  }
  ResetSignals();
  ::execve(program.c_str(), argv.data(), envp.data());
  return absl::ErrnoToStatus(errno, program);
}

absl::StatusOr<int> RunTask(Context& context, const vertex::TaskRun& run) {
  const Variables variables = ProcessVariables();
  const std::string scratch = variables("TMPDIR");
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(
      const TaskLaunch launch,
      vertex::PrepareTask(storage, run, variables, scratch.empty() ? "/tmp" : scratch));
  context.out().Flush();
  return Become(launch);
}

}  // namespace

void AddVertexTaskCommand(Command& program, Context& context) {
  Command& command = program.AddCommand(vertex::kTaskCommand, "Run a task in a container");
  command.Hide();
  auto run = std::make_shared<vertex::TaskRun>();
  command.Argument("FOLDER", &run->folder, "", Presence::kRequired);
  command.Argument("NONCE", &run->nonce, "", Presence::kRequired);
  command.Argument("SHA256", &run->sha256, "", Presence::kRequired);
  command.OnCall([&context, run] { return RunTask(context, *run); });
}

}  // namespace muster::cli
