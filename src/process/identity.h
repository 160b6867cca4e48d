// Identifies a process beyond the lifetime of its pid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster::process {

// Pids are reused, and differ between machines and containers. A pid with its start time and its
// host identifies one process uniquely.
struct ProcessIdentity {
  int pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  std::string host;          // ThisHost() (process/host_identity.h) where it was recorded
  bool operator==(const ProcessIdentity&) const = default;
};

// Returns NotFound if there is no such process or it is a zombie.
absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid);

enum class Existence {
  kAlive,
  kEnded,    // also zombies, and every process from before the last reboot
  kUnknown,  // not visible from here: possibly on another machine or in another pid namespace
};
// Returns the state of the process as far as this host can observe it.
Existence FindProcess(const ProcessIdentity& identity);

}  // namespace muster::process
