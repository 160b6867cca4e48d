// Variables in flat memory, their optimizer's slots, and the arithmetic on them. A parameter server
// has one; so has a process that trains without servers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "train/flat_memory.h"
#include "train/optimizer_kernels.h"
#include "train/placement.h"
#include "train/schedule.h"

namespace muster::train {

// The kinds of memory in a shard. The numbers are those of the wire's Frame::Area.
enum class Area { kValues, kSlot0, kSlot1, kBuffers, kTables, kTableSlot0, kTableSlot1 };
inline constexpr int kAreas = 7;

// Gradients of some rows of a table, from one task. A row appears once.
struct RowGradients {
  absl::Span<const int64_t> rows;  // within the shard's part of the table
  const float* gradients = nullptr;
};

// Each bucket has a version: how many updates it has had. Different buckets may be used from
// different threads at once; calls for the same bucket exclude each other.
class Shard {
 public:
  struct Options {
    OptimizerConfig optimizer;
    Schedule schedule;
    int64_t version = 0;  // of the values that will be assigned
    // Keeps each bucket's version before the last, so that a task that lost its memory can compute
    // its share of an update again while other buckets have had theirs.
    bool keep_previous = false;
  };
  Shard(ShardShape shape, Options options);

  const ShardShape& shape() const { return shape_; }
  int64_t version(int bucket) const { return states_[bucket].version; }

  // The first values, and those of the slots; before anything else is called.
  absl::Span<std::byte> Assign(Area area);
  // All that was assigned is there.
  void Activate();

  // A dense bucket's values of a version: the newest, or the one before when that is kept. Stays
  // as it is until the next update but one, or, without keep_previous, until the next.
  const float* Values(int bucket, int64_t version) const;
  // Updates a dense bucket with the sum of the gradients, in the given order, times `scale`. None:
  // only the version changes.
  void Apply(int bucket, absl::Span<Gradient* const> gradients, float scale);

  // InvalidArgument when a row is not in the table.
  absl::Status CheckRows(int table, absl::Span<const int64_t> rows) const;
  void ApplyRows(int table, absl::Span<const RowGradients> gradients, float scale);
  void ReadRows(int table, int64_t version, absl::Span<const int64_t> rows, float* out) const;

  // Empty: they stay as they are, in another version.
  void SetBuffers(absl::Span<const std::byte> bytes);
  // A copy of a version: the newest, or the one before when that is kept.
  std::vector<std::byte> Buffers(int64_t version) const;

  // Makes ready for snapshots, in the background: memory that is touched for the first time comes
  // slowly, and would hold up the updates after the first of them.
  void PrepareSnapshots();
  // Keeps every bucket as it is now: what is updated from here on is copied first. Cheap.
  void BeginSnapshot();
  // Copies the rest; may take long, and may run beside updates.
  void FinishSnapshot();
  absl::Span<const std::byte> Snapshot(Area area) const;

 private:
  struct BucketState {
    mutable absl::Mutex mutex;
    std::atomic<int64_t> version{0};
    bool snapshot_due = false;
  };
  // What the last update of a table replaced.
  struct Undo {
    std::vector<int64_t> rows;  // sorted
    std::vector<float> values;
  };

  float* ValuesOf(int64_t version) const;
  float* Slot(Area area, int64_t offset) const;
  absl::Span<std::byte> Memory(Area area, int64_t version) const;
  Update NextUpdate(int64_t version, float scale) const;
  // Copies the bucket into the snapshot if that is still to be done.
  void KeepForSnapshot(int bucket);
  void CopyToSnapshot(Area area, int64_t version, int64_t offset, int64_t elements);
  void AllocateSnapshot();

  const ShardShape shape_;
  const Options options_;
  const int slots_;
  FlatMemory values_[2];  // version v is in values_[v % 2] when the previous one is kept
  FlatMemory areas_[kAreas];
  std::vector<std::byte> previous_buffers_;
  FlatMemory snapshot_[kAreas];
  std::vector<Undo> undo_;
  std::vector<BucketState> states_;
  std::jthread preparing_;
};

}  // namespace muster::train
