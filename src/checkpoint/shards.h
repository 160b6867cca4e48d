// Which tensor goes into which file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/dtype.h"

namespace muster::checkpoint {

struct Shard {
  std::string file;
  std::vector<TensorSpec> specs;  // in the order given
  int64_t bytes = 0;              // of the tensors
};

struct ShardPlan {
  std::vector<Shard> shards;
  std::vector<int> shard_of;  // of each spec
};

// Every tensor whole in one file of `kind`; no file larger than `max_file_bytes` but that of a
// single larger tensor. A file holds elements of one size only, so that every tensor is aligned
// although bytes are stored in the order in which they arrive and the format knows no holes.
// InvalidArgument for impossible shapes and for more files than names can count.
absl::StatusOr<ShardPlan> PlanShards(absl::string_view kind, const std::vector<TensorSpec>& specs,
                                     int64_t max_file_bytes);

}  // namespace muster::checkpoint
