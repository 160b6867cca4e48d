// Counters of a control group (cgroup v2).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster::process {

// Values of controllers that are not enabled for the group are absent.
struct CgroupUsage {
  absl::Duration cpu;                   // since the group was created
  std::optional<int64_t> memory_bytes;  // anonymous and mapped pages, without other page cache
  std::optional<int64_t> read_bytes;
  std::optional<int64_t> written_bytes;
};

// Returns the folder of the group of `pid`, or "" if it is the root group or there is no cgroup v2.
std::string CgroupFolder(pid_t pid);
// Returns true if all processes of the group are among `pids`. Groups below it are not considered.
bool CgroupHasOnly(const std::string& folder, const std::vector<pid_t>& pids);
// Returns nullopt if the folder is not that of a group.
std::optional<CgroupUsage> ReadCgroup(const std::string& folder);

}  // namespace muster::process
