// One beginning of a job on a parameter server: the values as the chief gave them and all updates
// since. A restored job is another generation.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "nlohmann/json.hpp"
#include "train/ps/claims.h"
#include "train/ps/generation_spec.h"
#include "train/ps/members.h"
#include "train/shard.h"

namespace muster::train {

// Called from the threads of the tasks' streams. Answers go to the members.
//
// With `sync` a bucket goes from version v to v + 1 when the gradients of all tasks are there. A
// task pushes for v + 1 only when it has every bucket's v + 1, so no two buckets of a job are ever
// more than one version apart: one that lost its memory gets the older version and computes its
// share again. With backup tasks a bucket does not wait for the last ones, who go on with the
// newest.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  static absl::StatusOr<std::shared_ptr<Generation>> Create(GenerationSpec spec, Members& members);

  uint64_t number() const { return spec_.generation; }
  Shard& shard() { return shard_; }
  void Activate();
  bool active() const { return active_; }

  // Where a task that joins goes on.
  int64_t step() const;
  int64_t CursorOf(int rank) const;
  int64_t limit() const { return limit_; }
  const nlohmann::json& data() const { return spec_.data; }

  // A task's messages. An error ends its stream.
  absl::Status Push(int rank, const wire::Frame& frame, wire::Payload payload);
  absl::Status Pull(int rank, const wire::Frame& frame);
  absl::Status PullRows(int rank, const wire::Frame& frame, const wire::Payload& payload);
  void Claim(int rank);
  void Leave(int rank);

  void SetLimit(int64_t limit);
  // Keeps a copy of what is now; the step and the cursors that belong to it. Copies are numbered: a
  // later one replaces those before.
  nlohmann::json BeginSnapshot();
  int64_t snapshot_number() const { return snapshot_number_; }
  // Those whose gradients the next update waits for.
  std::vector<std::string> Missing() const;

 private:
  // Gradients of one task for one bucket.
  struct Contribution {
    bool here = false;
    bool skipped = false;
    wire::Frame::Precision precision = wire::Frame::FLOAT32;
    wire::Payload payload;         // of a dense bucket
    wire::Chunk together;          // of a table, and buffers
    int64_t rows = 0;              // of a table: their numbers come first
    std::vector<float> converted;  // from 16 bits
    absl::Span<const int64_t> row_numbers() const {
      return {static_cast<const int64_t*>(together.data), static_cast<size_t>(rows)};
    }
    const float* row_gradients() const;
  };
  struct Round {
    mutable absl::Mutex mutex;
    std::vector<Contribution> contributions ABSL_GUARDED_BY(mutex);  // by rank; sync
    int arrived ABSL_GUARDED_BY(mutex) = 0;
    std::vector<int64_t> sequences ABSL_GUARDED_BY(mutex);  // next by rank; async, bounded
  };

  Generation(GenerationSpec spec, Schedule schedule, Members& members);
  bool shared_steps() const { return spec_.strategy == Strategy::kSync; }
  // No task is left behind: what a task may ask for is kept.
  bool in_step() const { return shared_steps() && spec_.backup_tasks == 0; }
  bool is_buffers(int bucket) const {
    return !spec_.shape.is_dense(bucket) && !spec_.shape.is_table(bucket);
  }
  int Needed(int bucket) const;
  absl::Status Check(int rank, const wire::Frame& frame, size_t bytes) const;
  absl::StatusOr<Contribution> Read(int rank, const wire::Frame& frame,
                                    wire::Payload payload) const;
  absl::Status PushShared(int rank, const wire::Frame& frame, Contribution contribution);
  absl::Status PushAlone(int rank, const wire::Frame& frame, Contribution contribution);
  void ApplyShared(int bucket, std::vector<Contribution>& contributions);
  void ApplyRows(int bucket, absl::Span<const Contribution* const> contributions);
  absl::StatusOr<int64_t> KeptVersion(int bucket, int64_t wanted) const;
  void SendValues(int rank, int bucket, int64_t version);
  void CountAlone(int rank);
  absl::Status CheckClaim(int rank, int64_t sequence) const;
  wire::Outgoing MessageOf(wire::Frame::Kind kind) const;
  void SendGrants() ABSL_EXCLUSIVE_LOCKS_REQUIRED(claims_mutex_);

  const GenerationSpec spec_;
  Members& members_;
  Shard shard_;
  std::atomic<bool> active_{false};
  std::atomic<int64_t> limit_;
  std::atomic<int64_t> snapshot_number_{0};
  std::vector<Round> rounds_;
  mutable absl::Mutex claims_mutex_;
  Claims claims_ ABSL_GUARDED_BY(claims_mutex_);
  // Of the step in hand, by rank. What a task that left has done stays done: it is not applied
  // again.
  std::vector<int> buckets_done_ ABSL_GUARDED_BY(claims_mutex_);
};

}  // namespace muster::train
