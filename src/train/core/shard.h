// Variables in flat memory, their optimizer's slots, and the updates. Each parameter server has one
// shard; so has a process that trains without servers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "train/core/flat_memory.h"
#include "train/core/optimizer_kernels.h"
#include "train/core/placement.h"
#include "train/core/schedule.h"

namespace muster::train {

// The memory areas of a shard. The values equal those of Frame::Area on the wire.
// The order matters: AreaOf() in values.h computes the area of slot i as its values' area + 1 + i.
enum class Area { kValues, kSlot0, kSlot1, kBuffers, kTables, kTableSlot0, kTableSlot1 };
inline constexpr int kAreas = 7;

// One task's gradients of rows of a table. Each row appears once.
struct RowGradients {
  absl::Span<const int64_t> rows;  // within the shard's part of the table
  const float* gradients = nullptr;
};

// The version of a bucket is the number of its updates. Thread-safe per bucket: calls for different
// buckets run concurrently, calls for the same bucket are serialized.
class Shard {
 public:
  struct Options {
    OptimizerConfig optimizer;
    Schedule schedule;
    int64_t version = 0;  // of the first values
    // Keeps the previous version of each bucket, so that a restarted task can recompute its part of
    // an update that only some buckets have had.
    bool keep_previous = false;
  };
  Shard(ShardShape shape, Options options);

  const ShardShape& shape() const { return shape_; }
  int64_t version(int bucket) const { return states_[bucket].version; }

  // Returns the memory for the first values of an area.
  // REQUIRES: Activate() has not been called.
  absl::Span<std::byte> Assign(Area area);
  // Ends assignment.
  void Activate();

  // Returns a dense bucket's values of `version`: the newest, or with keep_previous the one before.
  // They stay unchanged until the next update but one; without keep_previous, until the next.
  const float* Values(int bucket, int64_t version) const;
  // Updates a dense bucket with the sum of the gradients, added in the given order, times `scale`.
  // Without gradients only the version changes.
  void Apply(int bucket, absl::Span<Gradient* const> gradients, float scale);

  // Returns InvalidArgument if a row is not in the table.
  absl::Status CheckRows(int table, absl::Span<const int64_t> rows) const;
  void ApplyRows(int table, absl::Span<const RowGradients> gradients, float scale);
  void ReadRows(int table, int64_t version, absl::Span<const int64_t> rows, float* out) const;

  // Sets the buffers. If `bytes` is empty only the version changes.
  void SetBuffers(absl::Span<const std::byte> bytes);
  // Returns a copy of `version`: the newest, or with keep_previous the one before.
  std::vector<std::byte> Buffers(int64_t version) const;

  // Allocates the memory of snapshots and faults its pages in on a background thread. Page faults
  // would otherwise delay the updates after the first snapshot.
  void PrepareSnapshots();
  // Begins a snapshot of all buckets: copy-on-write, so a bucket is copied before its next update.
  // Cheap.
  void BeginSnapshot();
  // Copies the buckets that were not updated since. May take long; may run beside updates.
  void FinishSnapshot();
  absl::Span<const std::byte> Snapshot(Area area) const;

 private:
  // The mutex serializes updates, reads and copies of one bucket. `version` is atomic because
  // version() reads it without the mutex; it is written only with the mutex held, after the values
  // that it describes.
  struct BucketState {
    mutable absl::Mutex mutex;
    std::atomic<int64_t> version{0};
    bool snapshot_due = false;
  };
  // The rows that the last update of a table replaced.
  struct Undo {
    std::vector<int64_t> rows;  // sorted
    std::vector<float> values;
  };

  float* ValuesOf(int64_t version) const;
  float* Slot(Area area, int64_t offset) const;
  absl::Span<std::byte> Memory(Area area, int64_t version) const;
  Update NextUpdate(int64_t version, float scale) const;
  // Copies the bucket into the snapshot if that is due. REQUIRES: the bucket's mutex held.
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
