// The process tree of this machine, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::process {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  uint64_t start_ticks = 0;
  bool zombie = false;
  int64_t cpu_ticks = 0;         // used by its threads, also by those that have ended
  int64_t waited_cpu_ticks = 0;  // used by children that it has waited for, and by theirs
  int64_t resident_bytes = 0;    // 0 for a zombie
};

// Returns NotFound if there is no such process.
absl::StatusOr<ProcessInfo> ReadProcess(pid_t pid);

// Returns the direct children of this process's main thread, including zombies.
std::vector<pid_t> OwnChildren();

// A snapshot of all processes. Taking it reads a file for every process of the machine, so one
// snapshot should serve many queries.
class ProcessSnapshot {
 public:
  ProcessSnapshot();

  // Returns the children of `parent`, including zombies.
  std::vector<ProcessInfo> Children(pid_t parent) const;
  // Returns every descendant of `root`, nearest first, without `root`.
  std::vector<ProcessInfo> Descendants(pid_t root) const;

 private:
  std::multimap<pid_t, ProcessInfo> by_parent_;
};

// Returns every process that was started with `entry` ("NAME=value") in its environment.
std::vector<ProcessInfo> ProcessesWithEnvironment(absl::string_view entry);
bool HasEnvironment(pid_t pid, absl::string_view entry);

// Sends `signal` to `process`, but not to a later process that reuses its pid.
void SignalProcess(const ProcessInfo& process, int signal);

// Kills every descendant of this process with SIGKILL until none is left, and reaps its children. A
// subreaper also catches processes forked meanwhile, because it inherits them. Returns the children
// that remain after `timeout`: owned by another user (a setuid program) or stuck in the kernel.
std::vector<pid_t> KillAllDescendants(absl::Duration timeout = absl::Seconds(10));

}  // namespace muster::process
