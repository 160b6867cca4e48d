#include "process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "process/signals.h"

extern char** environ;

namespace muster::process {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

// The child's data, prepared before the fork: between vfork and exec the child may only make system
// calls.
struct Prepared {
  std::string program;
  std::vector<char*> argv;
  std::vector<std::string> env_entries;
  std::vector<char*> envp;
  base::UniqueFd dev_null;
};

enum class Stage : int { kSetUp, kWorkingDir, kExec };

struct ChildError {
  Stage stage;
  int error;
};

bool IsRegularExecutable(const std::string& path, bool& exists) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  exists = true;
  return ::access(path.c_str(), X_OK) == 0;
}

// After vfork the child shares its memory with the suspended parent, which reads the error there.
[[noreturn]] void Fail(volatile ChildError& error, Stage stage) {
  error.error = errno;
  error.stage = stage;
  ::_exit(127);
}

[[noreturn]] void RunChild(const SpawnOptions& options, const Prepared& prepared, pid_t parent,
                           volatile ChildError& error) {
  ResetSignals();
  if (options.new_session && ::setsid() < 0) Fail(error, Stage::kSetUp);
  if (options.new_group && ::setpgid(0, 0) != 0) Fail(error, Stage::kSetUp);
  if (options.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, options.parent_death_signal) != 0) Fail(error, Stage::kSetUp);
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl()
  }
  const int input = options.stdin_fd >= 0 ? options.stdin_fd : prepared.dev_null.get();
  if (::dup2(input, STDIN_FILENO) < 0) Fail(error, Stage::kSetUp);
  if (options.output_fd >= 0 && (::dup2(options.output_fd, STDOUT_FILENO) < 0 ||
                                 ::dup2(options.output_fd, STDERR_FILENO) < 0)) {
    Fail(error, Stage::kSetUp);
  }
  if (options.error_fd >= 0 && ::dup2(options.error_fd, STDERR_FILENO) < 0) {
    Fail(error, Stage::kSetUp);
  }
  // The program inherits only the three standard streams.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (!options.working_dir.empty() && ::chdir(options.working_dir.c_str()) != 0) {
    Fail(error, Stage::kWorkingDir);
  }
  ::execve(prepared.program.c_str(), prepared.argv.data(), prepared.envp.data());
  Fail(error, Stage::kExec);
}

absl::StatusOr<Prepared> Prepare(const SpawnOptions& options) {
  if (options.argv.empty() || options.argv[0].empty()) {
    return absl::InvalidArgumentError("the command is empty");
  }
  if (!options.working_dir.empty()) {
    struct stat info {};
    if (::stat(options.working_dir.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("working directory ", options.working_dir));
    }
  }
  Prepared prepared;
  MUSTER_ASSIGN_OR_RETURN(prepared.program,
                          FindProgram(options.argv[0], options.env, options.working_dir));
  for (const std::string& word : options.argv)
    prepared.argv.push_back(const_cast<char*>(word.c_str()));
  prepared.argv.push_back(nullptr);
  // envp points into the strings, which a reallocation would move.
  prepared.env_entries.reserve(options.env.size());
  for (const auto& [name, value] : options.env) {
    prepared.env_entries.push_back(absl::StrCat(name, "=", value));
    prepared.envp.push_back(prepared.env_entries.back().data());
  }
  prepared.envp.push_back(nullptr);
  prepared.dev_null = base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!prepared.dev_null.valid()) return absl::ErrnoToStatus(errno, "/dev/null");
  return prepared;
}

// vfork costs a fraction of fork, which would copy the page tables of the supervisor for every
// task. Not inlined, so that the child cannot clobber the caller's stack frame.
[[gnu::noinline]] pid_t Fork(const SpawnOptions& options, const Prepared& prepared,
                             volatile ChildError& error) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::vfork();
  if (pid == 0) RunChild(options, prepared, parent, error);
  return pid;
}

absl::Status Explain(const ChildError& error, const SpawnOptions& options,
                     const Prepared& prepared) {
  switch (error.stage) {
    case Stage::kWorkingDir:
      return absl::ErrnoToStatus(error.error,
                                 absl::StrCat("working directory ", options.working_dir));
    case Stage::kExec:
      if (error.error == ENOEXEC) {
        return absl::InvalidArgumentError(
            absl::StrCat(prepared.program,
                         ": not a program (a script needs a first line such as "
                         "#!/bin/sh)"));
      }
      if (error.error == ENOENT) {
        return absl::NotFoundError(
            absl::StrCat(prepared.program, ": its interpreter (the #! line) does not exist"));
      }
      return absl::ErrnoToStatus(error.error, prepared.program);
    case Stage::kSetUp:
      break;
  }
  return absl::ErrnoToStatus(error.error, "preparing the process");
}

}  // namespace

std::map<std::string, std::string> CurrentEnvironment() {
  std::map<std::string, std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    env.insert(pair);
  }
  return env;
}

absl::StatusOr<std::string> FindProgram(const std::string& program,
                                        const std::map<std::string, std::string>& env,
                                        const std::string& working_dir) {
  bool exists = false;
  std::string searched;  // the path or PATH, then the message
  if (program.find('/') != std::string::npos) {
    searched = working_dir.empty() ? program : base::AbsolutePath(program, working_dir);
    if (IsRegularExecutable(searched, exists)) return searched;
    searched = absl::StrCat("'", searched, "' does not exist");
  } else {
    const auto path = env.find("PATH");
    searched = path == env.end() ? kDefaultPath : path->second;
    for (const absl::string_view directory : absl::StrSplit(searched, ':', absl::SkipEmpty())) {
      std::string candidate = base::JoinPath(directory, program);
      if (!working_dir.empty()) candidate = base::AbsolutePath(candidate, working_dir);
      if (IsRegularExecutable(candidate, exists)) return candidate;
    }
    searched = absl::StrCat("'", program, "' is not in PATH (", searched, ")");
  }
  if (exists) {
    return absl::PermissionDeniedError(
        absl::StrCat("'", program, "' is not executable; run chmod +x on it"));
  }
  return absl::NotFoundError(absl::StrCat("command not found: ", searched));
}

absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(options));
  // Signals are blocked across the fork, so that no handler of the parent runs in the child.
  sigset_t all, previous;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &previous);
  volatile ChildError shared{};
  const pid_t pid = Fork(options, prepared, shared);
  const int fork_error = errno;
  ::sigprocmask(SIG_SETMASK, &previous, nullptr);
  if (pid < 0) return absl::ErrnoToStatus(fork_error, "fork");
  const ChildError error{shared.stage, shared.error};
  if (error.error == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return Explain(error, options, prepared);
}

}  // namespace muster::process
