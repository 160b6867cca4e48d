#include "train/core/shard.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace muster::train {
namespace {

// The nice value at which pages are faulted in: training goes first.
constexpr int kLowestPriority = 19;
// Pages are faulted in by portions of this size, so that the destructor waits for one portion only.
constexpr size_t kPopulateBytes = 16 << 20;

size_t Floats(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }

// One row of one task's gradients.
struct RowPart {
  int64_t row;
  const float* gradient;
};

}  // namespace

Shard::Shard(ShardShape shape, Options options)
    : shape_(std::move(shape)),
      options_(options),
      slots_(static_cast<int>(SlotNames(options_.optimizer).size())),
      undo_(shape_.tables.size()),
      states_(static_cast<size_t>(shape_.bucket_count())) {
  values_[0] = FlatMemory(Floats(shape_.elements));
  if (options_.keep_previous) values_[1] = FlatMemory(Floats(shape_.elements));
  for (int slot = 0; slot < slots_; ++slot) {
    areas_[static_cast<int>(Area::kSlot0) + slot] = FlatMemory(Floats(shape_.elements));
    areas_[static_cast<int>(Area::kTableSlot0) + slot] = FlatMemory(Floats(shape_.table_elements));
  }
  areas_[static_cast<int>(Area::kBuffers)] = FlatMemory(static_cast<size_t>(shape_.buffer_bytes));
  areas_[static_cast<int>(Area::kTables)] = FlatMemory(Floats(shape_.table_elements));
  for (BucketState& state : states_) state.version = options_.version;
}

// Dense values are double-buffered in lockstep (keep_previous): an update reads values_[v % 2] and
// writes values_[(v + 1) % 2], so version v stays intact until v + 2 is computed. Messages that
// refer to version v in place rely on this.
float* Shard::ValuesOf(int64_t version) const {
  return values_[options_.keep_previous ? version % 2 : 0].floats();
}

absl::Span<std::byte> Shard::Memory(Area area, int64_t version) const {
  if (area == Area::kValues) {
    return {reinterpret_cast<std::byte*>(ValuesOf(version)), Floats(shape_.elements)};
  }
  const FlatMemory& memory = areas_[static_cast<int>(area)];
  return {memory.bytes(), memory.size()};
}

absl::Span<std::byte> Shard::Assign(Area area) { return Memory(area, options_.version); }

void Shard::Activate() {
  if (!options_.keep_previous || shape_.elements == 0) return;
  // No task asks for the version before the first. The copy faults the pages in before training.
  std::memcpy(ValuesOf(options_.version + 1), ValuesOf(options_.version), Floats(shape_.elements));
}

const float* Shard::Values(int bucket, int64_t version) const {
  return ValuesOf(version) + shape_.buckets[bucket].offset;
}

float* Shard::Slot(Area area, int64_t offset) const {
  float* slot = areas_[static_cast<int>(area)].floats();
  return slot == nullptr ? nullptr : slot + offset;
}

Update Shard::NextUpdate(int64_t version, float scale) const {
  return {.learning_rate = options_.schedule.LearningRate(version + 1),
          .step = version + 1,
          .scale = scale};
}

void Shard::Apply(int bucket, absl::Span<Gradient* const> gradients, float scale) {
  BucketState& state = states_[bucket];
  absl::MutexLock lock(&state.mutex);
  KeepForSnapshot(bucket);
  const Bucket& range = shape_.buckets[bucket];
  // With keep_previous the next version goes to the other memory; otherwise in == out.
  const float* in = ValuesOf(state.version) + range.offset;
  float* out = ValuesOf(state.version + 1) + range.offset;
  if (gradients.empty()) {
    if (in != out) std::memcpy(out, in, Floats(range.elements));
  } else {
    float* const slots[kMaxSlots] = {Slot(Area::kSlot0, range.offset),
                                     Slot(Area::kSlot1, range.offset)};
    train::Apply(options_.optimizer, NextUpdate(state.version, scale), gradients, in, out, slots,
                 range.elements);
  }
  // Last: a thread that reads the new version without the mutex must not precede the values.
  ++state.version;
}

absl::Status Shard::CheckRows(int table, absl::Span<const int64_t> rows) const {
  const int64_t count = shape_.tables[table].rows;
  for (const int64_t row : rows) {
    if (row < 0 || row >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", row, " is not in a table of ", count, " rows"));
    }
  }
  return absl::OkStatus();
}

void Shard::ApplyRows(int table, absl::Span<const RowGradients> gradients, float scale) {
  const Table& shape = shape_.tables[table];
  const int bucket = shape_.table_bucket(table);
  BucketState& state = states_[bucket];
  absl::MutexLock lock(&state.mutex);
  KeepForSnapshot(bucket);
  // Sort by row, and within a row keep the order of the tasks: the sum must not depend on the order
  // of arrival.
  std::vector<RowPart> parts;
  for (const RowGradients& task : gradients) {
    for (size_t i = 0; i < task.rows.size(); ++i) {
      parts.push_back({task.rows[i], task.gradients + i * static_cast<size_t>(shape.width)});
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const RowPart& a, const RowPart& b) { return a.row < b.row; });
  std::vector<int64_t> rows;
  std::vector<float> sums;
  for (const RowPart& part : parts) {
    if (rows.empty() || rows.back() != part.row) {
      rows.push_back(part.row);
      sums.insert(sums.end(), part.gradient, part.gradient + shape.width);
      continue;
    }
    float* sum = sums.data() + (rows.size() - 1) * static_cast<size_t>(shape.width);
    for (int64_t i = 0; i < shape.width; ++i) sum[i] += part.gradient[i];
  }
  // Tables keep their previous version as the overwritten rows: an update touches few rows, and a
  // second copy of a table would double the memory of the largest variables.
  float* values = areas_[static_cast<int>(Area::kTables)].floats() + shape.offset;
  if (options_.keep_previous) {
    Undo& undo = undo_[table];
    undo.rows = rows;
    undo.values.clear();
    for (const int64_t row : rows) {
      const float* old = values + row * shape.width;
      undo.values.insert(undo.values.end(), old, old + shape.width);
    }
  }
  if (!rows.empty()) {
    float* const slots[kMaxSlots] = {Slot(Area::kTableSlot0, shape.offset),
                                     Slot(Area::kTableSlot1, shape.offset)};
    train::ApplyRows(options_.optimizer, NextUpdate(state.version, scale), sums.data(), rows,
                     shape.width, values, slots);
  }
  ++state.version;
}

void Shard::ReadRows(int table, int64_t version, absl::Span<const int64_t> rows, float* out) const {
  const Table& shape = shape_.tables[table];
  const BucketState& state = states_[shape_.table_bucket(table)];
  absl::MutexLock lock(&state.mutex);
  const float* values = areas_[static_cast<int>(Area::kTables)].floats() + shape.offset;
  const Undo& undo = undo_[table];
  // Tables are not double-buffered: the previous version is the current one with the last update
  // undone.
  const bool before_last = options_.keep_previous && version < state.version;
  for (const int64_t row : rows) {
    const float* from = values + row * shape.width;
    if (before_last) {
      const auto at = std::lower_bound(undo.rows.begin(), undo.rows.end(), row);
      if (at != undo.rows.end() && *at == row) {
        from = undo.values.data() + (at - undo.rows.begin()) * shape.width;
      }
    }
    std::memcpy(out, from, Floats(shape.width));
    out += shape.width;
  }
}

void Shard::SetBuffers(absl::Span<const std::byte> bytes) {
  const int bucket = shape_.buffer_bucket();
  absl::MutexLock lock(&states_[bucket].mutex);
  KeepForSnapshot(bucket);
  const absl::Span<std::byte> memory = Memory(Area::kBuffers, 0);
  // Buffers have only one memory as well. The previous version is a copy, made at each update.
  if (options_.keep_previous) previous_buffers_.assign(memory.begin(), memory.end());
  if (!bytes.empty()) {
    std::memcpy(memory.data(), bytes.data(), std::min(bytes.size(), memory.size()));
  }
  ++states_[bucket].version;
}

std::vector<std::byte> Shard::Buffers(int64_t version) const {
  const BucketState& state = states_[shape_.buffer_bucket()];
  absl::MutexLock lock(&state.mutex);
  if (version < state.version && !previous_buffers_.empty()) return previous_buffers_;
  const absl::Span<std::byte> memory = Memory(Area::kBuffers, 0);
  return {memory.begin(), memory.end()};
}

void Shard::AllocateSnapshot() {
  for (int area = 0; area < kAreas; ++area) {
    const size_t size = Memory(static_cast<Area>(area), 0).size();
    if (snapshot_[area].size() != size) snapshot_[area] = FlatMemory(size);
  }
}

// The thread only touches pages; MADV_POPULATE_WRITE keeps their content, so a snapshot may be
// copied into the same memory meanwhile.
void Shard::PrepareSnapshots() {
  AllocateSnapshot();
  preparing_ = std::jthread([this](const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, 0, kLowestPriority);  // on Linux: of this thread only
    for (const FlatMemory& memory : snapshot_) {
      for (size_t offset = 0; offset < memory.size(); offset += kPopulateBytes) {
        if (stop.stop_requested()) return;
        memory.Populate(offset, kPopulateBytes);
      }
    }
  });
}

// Marks every bucket as due. The first of the next update and FinishSnapshot() copies the bucket,
// so updates never wait for a copy of the whole shard. The snapshot is of one version only if no
// update runs during this loop: in lockstep the chief requests the snapshot before it pushes its
// next gradient.
void Shard::BeginSnapshot() {
  AllocateSnapshot();
  for (BucketState& state : states_) {
    absl::MutexLock lock(&state.mutex);
    state.snapshot_due = true;
  }
}

void Shard::FinishSnapshot() {
  for (size_t bucket = 0; bucket < states_.size(); ++bucket) {
    absl::MutexLock lock(&states_[bucket].mutex);
    KeepForSnapshot(static_cast<int>(bucket));
  }
}

absl::Span<const std::byte> Shard::Snapshot(Area area) const {
  const FlatMemory& memory = snapshot_[static_cast<int>(area)];
  return {memory.bytes(), memory.size()};
}

void Shard::KeepForSnapshot(int bucket) {
  BucketState& state = states_[bucket];
  if (!state.snapshot_due) return;
  state.snapshot_due = false;
  if (shape_.is_dense(bucket)) {
    const Bucket& range = shape_.buckets[bucket];
    for (const Area area : {Area::kValues, Area::kSlot0, Area::kSlot1}) {
      CopyToSnapshot(area, state.version, range.offset, range.elements);
    }
  } else if (shape_.is_table(bucket)) {
    const Table& table = shape_.tables[bucket - static_cast<int>(shape_.buckets.size())];
    for (const Area area : {Area::kTables, Area::kTableSlot0, Area::kTableSlot1}) {
      CopyToSnapshot(area, 0, table.offset, table.rows * table.width);
    }
  } else {
    const absl::Span<std::byte> memory = Memory(Area::kBuffers, 0);
    std::memcpy(snapshot_[static_cast<int>(Area::kBuffers)].bytes(), memory.data(), memory.size());
  }
}

void Shard::CopyToSnapshot(Area area, int64_t version, int64_t offset, int64_t elements) {
  const absl::Span<std::byte> memory = Memory(area, version);
  if (memory.empty()) return;
  std::memcpy(snapshot_[static_cast<int>(area)].bytes() + Floats(offset),
              memory.data() + Floats(offset), Floats(elements));
}

}  // namespace muster::train
