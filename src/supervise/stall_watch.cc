#include "supervise/stall_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "process/spawn.h"
#include "process/tree.h"

namespace muster::supervise {
namespace {

constexpr size_t kMaxProcesses = 8;  // a task may have hundreds of data loaders

std::string Trimmed(const std::string& path) {
  std::string text = base::ReadFile(path).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return absl::StrReplaceAll(text, {{std::string(1, '\0'), " "}});
}

std::string DescribeThreads(pid_t pid) {
  const std::string proc = absl::StrCat("/proc/", pid);
  std::string text = absl::StrCat("process ", pid, ": ", Trimmed(proc + "/cmdline"), "\n");
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(proc + "/task", error)) {
    const std::string path = thread.path().string();
    absl::StrAppend(&text, "  thread ", thread.path().filename().string(), " ",
                    Trimmed(path + "/comm"), ": waits in ", Trimmed(path + "/wchan"),
                    ", system call ", Trimmed(path + "/syscall"), "\n");
    const std::string stack = Trimmed(path + "/stack");
    if (!stack.empty()) {
      absl::StrAppend(&text, "    ", absl::StrReplaceAll(stack, {{"\n", "\n    "}}), "\n");
    }
  }
  return text;
}

}  // namespace

absl::Time ProgressFile::LastChange(const std::string& path, absl::Time now) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return absl::InfinitePast();
  const absl::Time modified = absl::TimeFromTimespec(info.st_mtim);
  if (modified != modified_) {
    modified_ = modified;
    seen_ = now;
  }
  return seen_;
}

absl::StatusOr<pid_t> CaptureStacks(pid_t root, const std::string& path) {
  std::vector<pid_t> pids = {root};
  for (const process::ProcessInfo& process : process::ProcessSnapshot().Descendants(root)) {
    if (pids.size() < kMaxProcesses) pids.push_back(process.pid);
  }
  std::string text;
  for (const pid_t pid : pids) absl::StrAppend(&text, DescribeThreads(pid), "\n");
  MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(path, text));

  const auto environment = process::CurrentEnvironment();
  if (!process::FindProgram("gdb", environment, "").ok()) return 0;
  const base::UniqueFd output(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string script = absl::StrCat("for p in ", absl::StrJoin(pids, " "),
                                          "; do echo \"stacks of process $p:\"; gdb -nx -batch -ex "
                                          "'thread apply all backtrace' -p $p; done");
  // The group allows the caller to kill the shell and gdb together.
  return process::Spawn({.argv = {"/bin/sh", "-c", script},
                         .env = environment,
                         .output_fd = output.get(),
                         .parent_death_signal = SIGKILL,
                         .new_group = true});
}

}  // namespace muster::supervise
