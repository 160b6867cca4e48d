#include "process/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"

namespace muster::process {
namespace {

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return pids;
  while (const dirent* entry = ::readdir(proc.get())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid)) pids.push_back(pid);
  }
  return pids;
}

std::vector<ProcessInfo> AllProcesses() {
  std::vector<ProcessInfo> processes;
  for (const pid_t pid : AllPids()) {
    if (auto info = ReadProcess(pid); info.ok()) processes.push_back(*info);
  }
  return processes;
}

}  // namespace

absl::StatusOr<ProcessInfo> ReadProcess(pid_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const std::string stat,
                          base::ReadFile(absl::StrCat("/proc/", pid, "/stat")));
  // The second field is the program name in parentheses, which may itself contain parentheses.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return absl::InternalError("unreadable /proc/<pid>/stat");
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name_end + 2), ' ');
  constexpr size_t kState = 0, kParent = 1, kGroup = 2, kUser = 11, kSystem = 12, kWaitedUser = 13,
                   kWaitedSystem = 14, kStart = 19, kResidentPages = 21;
  ProcessInfo info{.pid = pid};
  int64_t user = 0, system = 0, waited_user = 0, waited_system = 0, pages = 0;
  if (fields.size() <= kResidentPages || !absl::SimpleAtoi(fields[kParent], &info.parent) ||
      !absl::SimpleAtoi(fields[kGroup], &info.group) || !absl::SimpleAtoi(fields[kUser], &user) ||
      !absl::SimpleAtoi(fields[kSystem], &system) ||
      !absl::SimpleAtoi(fields[kWaitedUser], &waited_user) ||
      !absl::SimpleAtoi(fields[kWaitedSystem], &waited_system) ||
      !absl::SimpleAtoi(fields[kStart], &info.start_ticks) ||
      !absl::SimpleAtoi(fields[kResidentPages], &pages)) {
    return absl::InternalError("unreadable /proc/<pid>/stat");
  }
  info.cpu_ticks = user + system;
  info.waited_cpu_ticks = waited_user + waited_system;
  info.resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
  info.zombie = fields[kState] == "Z" || fields[kState] == "X";
  return info;
}

std::vector<pid_t> OwnChildren() {
  const pid_t self = ::getpid();
  std::vector<pid_t> children;
  const auto listed = base::ReadFile(absl::StrCat("/proc/self/task/", self, "/children"));
  if (listed.ok()) {
    for (const absl::string_view word : absl::StrSplit(*listed, ' ', absl::SkipWhitespace())) {
      pid_t pid = 0;
      if (absl::SimpleAtoi(word, &pid)) children.push_back(pid);
    }
    return children;
  }
  for (const ProcessInfo& process : AllProcesses()) {  // kernel without CONFIG_PROC_CHILDREN
    if (process.parent == self) children.push_back(process.pid);
  }
  return children;
}

ProcessSnapshot::ProcessSnapshot() {
  for (const ProcessInfo& process : AllProcesses()) by_parent_.emplace(process.parent, process);
}

std::vector<ProcessInfo> ProcessSnapshot::Children(pid_t parent) const {
  std::vector<ProcessInfo> children;
  const auto [begin, end] = by_parent_.equal_range(parent);
  for (auto it = begin; it != end; ++it) children.push_back(it->second);
  return children;
}

std::vector<ProcessInfo> ProcessSnapshot::Descendants(pid_t root) const {
  std::vector<ProcessInfo> found;
  // Breadth-first: `found` is both the result and the queue.
  pid_t parent = root;
  for (size_t next = 0;; parent = found[next++].pid) {
    const auto [begin, end] = by_parent_.equal_range(parent);
    for (auto it = begin; it != end; ++it) found.push_back(it->second);
    if (next == found.size()) return found;
  }
}

bool HasEnvironment(pid_t pid, absl::string_view entry) {
  const auto environment = base::ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  if (!environment.ok()) return false;
  for (const absl::string_view candidate : absl::StrSplit(*environment, '\0')) {
    if (candidate == entry) return true;
  }
  return false;
}

std::vector<ProcessInfo> ProcessesWithEnvironment(absl::string_view entry) {
  std::vector<ProcessInfo> found;
  for (const pid_t pid : AllPids()) {
    if (!HasEnvironment(pid, entry)) continue;
    if (auto info = ReadProcess(pid); info.ok() && !info->zombie) found.push_back(*info);
  }
  return found;
}

void SignalProcess(const ProcessInfo& process, int signal) {
  const base::UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd.valid()) return;
  // The descriptor pins the pid from here on. Check that it pinned the intended process.
  const auto now = ReadProcess(process.pid);
  if (!now.ok() || now->start_ticks != process.start_ticks) return;
  ::syscall(SYS_pidfd_send_signal, fd.get(), signal, nullptr, 0);
}

std::vector<pid_t> KillAllDescendants(absl::Duration timeout) {
  const absl::Time give_up = absl::Now() + timeout;
  // Orphans of a killed child are reparented to this process, so more may appear as long as any
  // child exists.
  while (!OwnChildren().empty()) {
    if (absl::Now() > give_up) return OwnChildren();
    for (const ProcessInfo& process : ProcessSnapshot().Descendants(::getpid())) {
      if (!process.zombie) SignalProcess(process, SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    absl::SleepFor(absl::Milliseconds(1));  // a killed process takes a moment to exit
  }
  return {};
}

}  // namespace muster::process
