#include "checkpoint/shards.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "checkpoint/format.h"
#include "checkpoint/safetensors.h"

namespace muster::checkpoint {

absl::StatusOr<ShardPlan> PlanShards(absl::string_view kind,
                                     const std::vector<base::TensorSpec>& specs,
                                     int64_t max_file_bytes) {
  ShardPlan plan;
  std::map<int64_t, int> current;  // by element size
  for (const base::TensorSpec& spec : specs) {
    const auto bytes = CheckedBytes(spec);
    if (!bytes.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", spec.name, "' has an impossible shape ", base::ToString(spec.shape)));
    }
    const auto [shard_index, added] = current.try_emplace(base::SizeOf(spec.dtype), 0);
    const bool full = !added && *bytes > max_file_bytes - plan.shards[shard_index->second].bytes;
    if (added || full) {
      shard_index->second = static_cast<int>(plan.shards.size());
      plan.shards.emplace_back();
    }
    Shard& shard = plan.shards[shard_index->second];
    shard.specs.push_back(spec);
    shard.bytes += *bytes;
    plan.shard_of.push_back(shard_index->second);
  }
  const int count = static_cast<int>(plan.shards.size());
  if (count > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " files are too many for a checkpoint; allow larger ones"));
  }
  for (int i = 0; i < count; ++i) plan.shards[i].file = ShardFile(kind, i + 1, count);
  return plan;
}

}  // namespace muster::checkpoint
