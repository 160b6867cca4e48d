// What a process tree uses of this machine, read from /proc and from its cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "process/cgroup.h"
#include "process/tree.h"
#include "process/tree_counter.h"

namespace muster::process {

// Counters count from the start of the tree. Values that cannot be measured are absent.
struct Usage {
  absl::Duration cpu;
  // Resident memory at the time of the reading: the sum of the resident set sizes (RSS), so pages
  // that processes of the tree share count once for each. In a cgroup of its own, without
  // repetition.
  std::optional<int64_t> memory_bytes;
  // Bytes that disks transferred for the tree; reads that the page cache served do not count.
  std::optional<int64_t> read_bytes;
  std::optional<int64_t> written_bytes;
  // Bytes of all interfaces except loopback. Absent if the tree is in the network namespace of this
  // process: the kernel counts by namespace only.
  std::optional<int64_t> received_bytes;
  std::optional<int64_t> sent_bytes;
};

// Reads the usage of one tree, repeatedly. Counters never decrease. CPU time of processes that
// start and end between two readings counts if their parents wait for them. Not thread-safe.
class UsageMeter {
 public:
  // `processes` are all processes of the tree at this time, the root first. REQUIRES: not empty.
  Usage Read(const std::vector<ProcessInfo>& processes);
  // Returns the counters of a tree whose root has exited and was not waited for yet. The memory is
  // absent.
  Usage ReadLast(const ProcessInfo& root);

 private:
  void ReadCounters(const std::vector<ProcessInfo>& processes,
                    const std::optional<CgroupUsage>& group);
  std::optional<CgroupUsage> ReadOwnGroup(const std::vector<ProcessInfo>& processes);
  void ReadNetwork(pid_t root);

  TreeCounter cpu_ticks_, read_bytes_, written_bytes_;
  struct Totals {
    absl::Duration cpu;
    int64_t read = 0;
    int64_t written = 0;
  };
  Totals tree_;                       // of the tree counters, at the last reading
  std::optional<CgroupUsage> group_;  // at the last reading
  std::string group_folder_;
  Usage usage_;
};

}  // namespace muster::process
