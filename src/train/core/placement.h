// The placement of a model's variables on parameter servers. Pure: every task computes the same
// placement from the variables and the number of servers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes/dtype.h"
#include "nlohmann/json.hpp"

namespace muster::train {

struct Variable {
  enum class Kind {
    kDense,   // trained; the whole gradient is sent
    kTable,   // trained; [rows, width]; only the rows in use are sent
    kBuffer,  // not trained; of any type; the chief sets it
  };
  base::TensorSpec spec;
  Kind kind = Kind::kDense;
};

// A range of elements of a variable and its offset in the shard's memory of that kind. Elements are
// floats for dense variables and tables, bytes for buffers.
struct Piece {
  int variable = 0;
  int64_t first = 0;
  int64_t elements = 0;
  int64_t offset = 0;
};

// Dense elements that are pushed, updated and sent back together.
struct Bucket {
  int64_t offset = 0;
  int64_t elements = 0;
};

// The rows of a table that a shard holds.
struct Table {
  int variable = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t offset = 0;  // of its first element in the shard's tables
};

// The layout of one server's shard. Buckets are numbered: the dense ones, then the tables, then one
// for the buffers if there are any.
struct ShardShape {
  int64_t elements = 0;
  std::vector<Bucket> buckets;
  std::vector<Table> tables;
  int64_t table_elements = 0;
  int64_t buffer_bytes = 0;

  int bucket_count() const {
    return static_cast<int>(buckets.size() + tables.size()) + (buffer_bytes > 0 ? 1 : 0);
  }
  bool is_dense(int bucket) const { return bucket < static_cast<int>(buckets.size()); }
  bool is_table(int bucket) const {
    return !is_dense(bucket) && bucket < static_cast<int>(buckets.size() + tables.size());
  }
  int table_bucket(int table) const { return static_cast<int>(buckets.size()) + table; }
  int buffer_bucket() const { return static_cast<int>(buckets.size() + tables.size()); }

  nlohmann::json ToJson() const;
  static absl::StatusOr<ShardShape> FromJson(const nlohmann::json& json);
};

struct ShardPlan {
  ShardShape shape;
  std::vector<Piece> dense;    // in order of offset
  std::vector<Piece> buffers;  // in order of offset

  // Returns the parts of the dense pieces in a bucket; their offsets are relative to the bucket.
  std::vector<Piece> PiecesOf(int bucket) const;
};

// A range of bytes of a variable in a shard.
struct Extent {
  int server = 0;
  int64_t first = 0;   // byte of the variable
  int64_t offset = 0;  // byte of the shard's dense values, tables or buffers
  int64_t bytes = 0;
};
// Returns all extents of a variable, ordered by `first`.
std::vector<Extent> ExtentsOf(const std::vector<ShardPlan>& plans, int variable);

// Distributes the variables over `servers` shards by bytes: the largest first, each to the shard
// with the least. A variable larger than a fair share is split along its first axis. Within a shard
// the variables are in reverse order of definition, which is about the order in which backward
// produces their gradients, and are cut into buckets of at most `bucket_bytes`.
std::vector<ShardPlan> Place(const std::vector<Variable>& variables, int servers,
                             int64_t bucket_bytes);

}  // namespace muster::train
