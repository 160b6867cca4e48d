// Which process a pid meant when it was written down.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Pids are used again; a pid with its start time and the machine's boot id is not.
struct ProcessIdentity {
  int pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  std::string boot_id;
  bool operator==(const ProcessIdentity&) const = default;
};

// NotFound when there is no such process.
absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid);

// True while that very process exists and is not a zombie.
bool IsAlive(const ProcessIdentity& identity);

}  // namespace muster
