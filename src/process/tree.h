// The processes of this machine as a tree, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  uint64_t start_ticks = 0;
  bool zombie = false;
};

// NotFound when there is no such process.
absl::StatusOr<ProcessInfo> ReadProcess(pid_t pid);

// The direct children of this process's main thread, zombies too.
std::vector<pid_t> OwnChildren();

// All processes as they were at one moment. Taking it reads a file of every process of the machine:
// one is enough to ask about many roots.
class ProcessSnapshot {
 public:
  ProcessSnapshot();

  // Every descendant of `root`, nearest first, `root` not included.
  std::vector<ProcessInfo> Descendants(pid_t root) const;

 private:
  std::multimap<pid_t, ProcessInfo> by_parent_;
};

// Every process that has `entry` ("NAME=value") in the environment it was started with.
std::vector<ProcessInfo> ProcessesWithEnvironment(absl::string_view entry);
bool HasEnvironment(pid_t pid, absl::string_view entry);

// Sends `signal` to the very process that `process` described, not to a later one with its pid.
void SignalProcess(const ProcessInfo& process, int signal);

// SIGKILLs every descendant of this process, until none is left; reaps those that are its children.
// Processes forked meanwhile are caught too, because a subreaper inherits them. Returns those that
// are still there after `patience`: another user's (a setuid program), or stuck in the kernel.
std::vector<pid_t> KillAllDescendants(absl::Duration patience = absl::Seconds(10));

}  // namespace muster
