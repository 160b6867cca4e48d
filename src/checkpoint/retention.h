// The retention rule for the checkpoints of a model dir, local or remote.
#pragma once

#include <cstdint>
#include <set>

#include "absl/status/status.h"

namespace muster::checkpoint {

// Returns InvalidArgument unless `keep` is at least 1.
absl::Status CheckKeep(int keep);

// Returns the steps to delete: every step of `usable` and `damaged` that is older than the `keep`
// newest usable ones and not in `always`. A damaged checkpoint does not count as kept. Returns
// nothing while there are fewer than `keep` usable ones.
// REQUIRES: `keep` >= 1; no step is in both sets.
std::set<int64_t> StepsToDelete(const std::set<int64_t>& usable, const std::set<int64_t>& damaged,
                                int keep, const std::set<int64_t>& always);

}  // namespace muster::checkpoint
