// The values of a job's variables on their way into the shards and out of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "train/placement.h"
#include "train/shard.h"

namespace muster::train {

// Where the numbering of batches begins: sequence `first` of rank 0 is at position `base` of the
// data. A job that is resumed with other tasks or batches begins anew where the last one stopped.
struct DataOrigin {
  int64_t base = 0;
  int64_t first = 0;

  nlohmann::json ToJson() const { return {{"base", base}, {"first", first}}; }
  static DataOrigin FromJson(const nlohmann::json& json);
};

// Where the job stands.
struct Progress {
  int64_t step = 0;      // completed steps of the job
  int64_t sequence = 0;  // batches that this task has contributed
  int64_t limit = 0;     // the step at which the job ends
  DataOrigin data;
};

// The variables as they were at one step, read while training goes on.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  // {"step": …, "cursors": […]}
  virtual const nlohmann::json& state() const = 0;
  // `bytes` of an area of a shard, in one piece or several.
  virtual absl::Status Read(const Extent& extent, Area area,
                            absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> take) = 0;
};

// The first values of all variables and slots.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual Progress progress() const = 0;
  virtual std::vector<int64_t> cursors() const = 0;  // by rank; empty: none are known
  // All of a variable, or of its slot; empty: zeros.
  virtual absl::Span<const std::byte> Values(int variable) const = 0;
  virtual absl::Span<const std::byte> Slot(int variable, int slot) const = 0;
};

using FirstValues = absl::FunctionRef<absl::StatusOr<std::unique_ptr<ValueSource>>()>;

// The area where a variable's values are (slot -1), or those of one of its slots.
Area AreaOf(Variable::Kind kind, int slot);

// Hands every value and slot to `assign`, piece by piece.
absl::Status AssignAll(
    const ValueSource& source, const std::vector<Variable>& variables,
    const std::vector<ShardPlan>& plans, int slots,
    absl::FunctionRef<absl::Status(const Extent&, Area, absl::Span<const std::byte>)> assign);

}  // namespace muster::train
