// Which process a pid meant when it was written down.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Pids are used again, and mean something else on another machine or in another container; a pid
// with its start time and its place is one process for all time.
struct ProcessIdentity {
  int pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  std::string place;         // ThisPlace() (process/place.h) of who wrote it down
  bool operator==(const ProcessIdentity&) const = default;
};

// NotFound when there is no such process.
absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid);

enum class Existence {
  kAlive,
  kEnded,    // zombies too; and everything from before the machine's last start
  kUnknown,  // perhaps another machine or pid namespace: it cannot be seen from here
};
Existence Find(const ProcessIdentity& identity);

}  // namespace muster
