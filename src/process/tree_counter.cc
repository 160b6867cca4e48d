#include "process/tree_counter.h"

#include <algorithm>
#include <utility>

namespace muster::process {
namespace {

const TreeCounter::Entry* FindSame(const std::map<pid_t, TreeCounter::Entry>& entries,
                                   const TreeCounter::Entry& process) {
  const auto found = entries.find(process.pid);
  if (found == entries.end() || found->second.start_ticks != process.start_ticks) return nullptr;
  return &found->second;
}

}  // namespace

pid_t TreeCounter::HeirOf(const Entry& ended, const std::map<pid_t, Entry>& now) const {
  auto ancestor = last_.find(ended.parent);
  // The limit guards against a loop, which entries of reused pids could form.
  for (size_t i = 0; i < last_.size() && ancestor != last_.end(); ++i) {
    if (FindSame(now, ancestor->second) != nullptr) return ancestor->first;
    ancestor = last_.find(ancestor->second.parent);
  }
  return 0;
}

int64_t TreeCounter::Update(const std::vector<Entry>& entries) {
  std::map<pid_t, Entry> now;
  int64_t sum = 0;
  for (const Entry& entry : entries) {
    if (now.emplace(entry.pid, entry).second) sum += entry.value;
  }
  std::map<pid_t, int64_t> left_to;  // by heir: counters of the processes that have ended
  for (const auto& [pid, entry] : last_) {
    if (FindSame(now, entry) == nullptr) left_to[HeirOf(entry, now)] += entry.value;
  }
  // The entries of a reading are not of the same instant: a child may have ended after its parent
  // was read. The parent then inherits its counter in the next reading, which pays it back.
  std::map<pid_t, int64_t> unpaid;
  for (const auto& [pid, entry] : now) {
    const Entry* before = FindSame(last_, entry);
    if (before == nullptr) continue;
    int64_t inherited = std::max<int64_t>(0, entry.from_children - before->from_children);
    if (const auto left = left_to.find(pid); left != left_to.end()) {
      const int64_t known = std::min(inherited, left->second);
      inherited -= known;
      left->second -= known;
      if (left->second > 0) unpaid[pid] = left->second;
    }
    if (const auto owed = unpaid_.find(pid); owed != unpaid_.end()) {
      ended_ -= std::min(inherited, owed->second);
    }
  }
  for (const auto& [heir, value] : left_to) ended_ += value;
  unpaid_ = std::move(unpaid);
  last_ = std::move(now);
  total_ = std::max(total_, sum + ended_);
  return total_;
}

}  // namespace muster::process
