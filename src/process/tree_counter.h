// Sums a counter of the kernel over a process tree.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace muster::process {

// The sum of a counter over all processes that a tree has ever had. The counter of a process ends
// with it; when its parent waits for it, the kernel adds it to a counter of the parent. That does
// not happen if the parent has ended before, ignores SIGCHLD, or leaves the tree. TreeCounter adds
// the counters of ended processes itself where the kernel did not, so the sum never decreases. Not
// thread-safe.
class TreeCounter {
 public:
  struct Entry {
    pid_t pid = 0;
    uint64_t start_ticks = 0;
    pid_t parent = 0;
    int64_t value = 0;          // the counter, with what it has inherited
    int64_t from_children = 0;  // the part of `value` that may be inherited
  };

  // Processes a reading of all processes of the tree and returns the sum.
  int64_t Update(const std::vector<Entry>& entries);

 private:
  // Returns the nearest ancestor of `ended`, as of the last reading, that is in `now`; 0 if none.
  pid_t HeirOf(const Entry& ended, const std::map<pid_t, Entry>& now) const;

  std::map<pid_t, Entry> last_;
  int64_t ended_ = 0;                // counters of ended processes that no process inherited
  std::map<pid_t, int64_t> unpaid_;  // by heir: part of ended_ that it may yet inherit
  int64_t total_ = 0;
};

}  // namespace muster::process
