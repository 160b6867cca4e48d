#include "platform/vertex/task_main.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "platform/vertex/mounted_buckets.h"
#include "platform/vertex/task.h"
#include "process/signals.h"
#include "process/spawn.h"
#include "storage/storage.h"

namespace muster::vertex {
namespace {

// Replaces this process with the task. Returns only on failure.
absl::Status Become(const job::TaskLaunch& launch) {
  std::map<std::string, std::string> env = process::CurrentEnvironment();
  for (const auto& [name, value] : launch.env) env[name] = value;
  MUSTER_ASSIGN_OR_RETURN(const std::string program,
                          process::FindProgram(launch.argv.front(), env, launch.working_dir));
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
  process::ResetSignals();
  ::execve(program.c_str(), argv.data(), envp.data());
  return absl::ErrnoToStatus(errno, program);
}

}  // namespace

absl::Status RunTask(storage::FileSystem& files, const TaskRun& run) {
  const base::Variables variables = base::ProcessVariables();
  const std::string scratch = variables("TMPDIR");
  MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch launch,
                          PrepareTask(files, run, variables, scratch.empty() ? "/tmp" : scratch));
  std::fflush(nullptr);  // exec would lose buffered output
  return Become(launch);
}

absl::Status RunRemoteTask(const TaskRun& run) {
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url folder, storage::ParseUrl(run.folder));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(folder));
  return RunTask(*files, run);
}

int MountedTaskMain(int argc, char** argv) {
  constexpr int kArguments = 5;
  if (argc != kArguments) {
    std::fprintf(stderr, "muster-agent: usage: vertex-task FOLDER NONCE SHA256\n");
    return 2;
  }
  MountedBuckets buckets;
  const absl::Status failure =
      RunTask(buckets, {.folder = argv[2], .nonce = argv[3], .sha256 = argv[4]});
  std::fprintf(stderr, "muster-agent: %s\n", std::string(failure.message()).c_str());
  return 1;
}

}  // namespace muster::vertex
