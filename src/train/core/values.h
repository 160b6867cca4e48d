// The values of a job's variables, read from and assigned to shards.
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
#include "train/core/placement.h"
#include "train/core/shard.h"

namespace muster::train {

// The origin of the numbering of batches: sequence `first` of rank 0 is at position `base` of the
// data. A job that resumes with other tasks or batch sizes gets a new origin where the previous run
// stopped.
struct DataOrigin {
  int64_t base = 0;
  int64_t first = 0;

  nlohmann::json ToJson() const { return {{"base", base}, {"first", first}}; }
  static DataOrigin FromJson(const nlohmann::json& json);
};

// The progress of a job, as one task sees it.
struct Progress {
  int64_t step = 0;      // completed steps of the job
  int64_t sequence = 0;  // batches that this task has contributed
  int64_t limit = 0;     // the step at which the job ends
  DataOrigin data;
};

// The variables as of one step. May be read while training continues.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  // {"step": …, "cursors": […]}
  virtual const nlohmann::json& state() const = 0;
  // Passes the bytes of `extent` in `area` to `take`, in one or more pieces.
  virtual absl::Status Read(const Extent& extent, Area area,
                            absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> take) = 0;
};

// The first values of all variables and slots.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual Progress progress() const = 0;
  virtual std::vector<int64_t> cursors() const = 0;  // by rank; empty: unknown
  // Return all bytes of a variable, or of one of its slots; empty means zeros.
  virtual absl::Span<const std::byte> Values(int variable) const = 0;
  virtual absl::Span<const std::byte> Slot(int variable, int slot) const = 0;
};

using FirstValues = absl::FunctionRef<absl::StatusOr<std::unique_ptr<ValueSource>>()>;

// Returns the area of a variable's values (slot -1) or of one of its slots.
Area AreaOf(Variable::Kind kind, int slot);

// Calls `assign` for each extent of every value and slot.
absl::Status AssignAll(
    const ValueSource& source, const std::vector<Variable>& variables,
    const std::vector<ShardPlan>& plans, int slots,
    absl::FunctionRef<absl::Status(const Extent&, Area, absl::Span<const std::byte>)> assign);

}  // namespace muster::train
