#include "checkpoint/retention.h"

#include <iterator>

namespace muster::checkpoint {

absl::Status CheckKeep(int keep) {
  if (keep >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError("at least 1 checkpoint must be kept");
}

std::set<int64_t> StepsToDelete(const std::set<int64_t>& usable, const std::set<int64_t>& damaged,
                                int keep, const std::set<int64_t>& always) {
  std::set<int64_t> deleted;
  if (usable.size() < static_cast<size_t>(keep)) return deleted;
  const int64_t oldest_kept = *std::next(usable.rbegin(), keep - 1);
  for (const std::set<int64_t>* steps : {&usable, &damaged}) {
    for (const int64_t step : *steps) {
      if (step < oldest_kept && !always.contains(step)) deleted.insert(step);
    }
  }
  return deleted;
}

}  // namespace muster::checkpoint
