// Assigns tensors to files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes/dtype.h"

namespace muster::checkpoint {

struct Shard {
  std::string file;
  std::vector<base::TensorSpec> specs;  // in the order given
  int64_t bytes = 0;                    // of the tensors
};

struct ShardPlan {
  std::vector<Shard> shards;
  std::vector<int> shard_of;  // index into `shards` for each spec
};

// Puts each tensor whole into one file of `kind`. No file exceeds `max_file_bytes` except that of a
// single larger tensor. A file contains elements of one size only: tensors are stored in the order
// in which they arrive and the format allows no padding, so this keeps each tensor aligned.
// Returns InvalidArgument for impossible shapes and for more than kMaxShards files.
absl::StatusOr<ShardPlan> PlanShards(absl::string_view kind,
                                     const std::vector<base::TensorSpec>& specs,
                                     int64_t max_file_bytes);

}  // namespace muster::checkpoint
