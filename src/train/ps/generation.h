// One generation of a job on a parameter server: the values that the chief assigned and all updates
// since. A restored job is a new generation.
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
#include "train/core/shard.h"
#include "train/ps/claims.h"
#include "train/ps/generation_spec.h"
#include "train/ps/members.h"
#include "train/ps/push_codec.h"

namespace muster::train {

// Thread-safe: called from the threads of the tasks' streams. Answers are sent through Members.
//
// With `sync` a bucket advances from version v to v + 1 once the gradients of all tasks have
// arrived. A task pushes for v + 1 only when it has v + 1 of every bucket, so no two buckets of a
// job are more than one version apart: a restarted task gets the older version and recomputes its
// gradients. With backup tasks a bucket does not wait for the slowest tasks, which continue with
// the newest values.
//
// Lock order: a Round's mutex, then claims_mutex_.
// Below both: the mutexes of the shard's buckets; that of Members, then that of an Outbox.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  static absl::StatusOr<std::shared_ptr<Generation>> Create(GenerationSpec spec, Members& members);

  uint64_t number() const { return spec_.generation; }
  Shard& shard() { return shard_; }
  void Activate();
  bool active() const { return active_; }

  // The position at which a joining task resumes. Thread-safe at any time; a bucket that is being
  // updated counts with its old version.
  int64_t step() const;
  int64_t CursorOf(int rank) const;
  int64_t limit() const { return limit_; }
  const nlohmann::json& data() const { return spec_.data; }

  // Handle a task's messages. An error ends its stream.
  absl::Status Push(int rank, const wire::Frame& frame, wire::Payload payload);
  absl::Status Pull(int rank, const wire::Frame& frame);
  absl::Status PullRows(int rank, const wire::Frame& frame, const wire::Payload& payload);
  void Claim(int rank);
  void Leave(int rank);

  void SetLimit(int64_t limit);
  // Begins a snapshot and returns its step and cursors. Snapshots are numbered; a later one
  // replaces the earlier.
  nlohmann::json BeginSnapshot();
  int64_t snapshot_number() const { return snapshot_number_; }
  // Returns the tasks whose gradients the next update waits for, and those not connected.
  std::vector<std::string> Missing() const;

 private:
  // One task's push to one bucket.
  struct Contribution {
    bool present = false;
    bool skipped = false;
    wire::Frame::Precision precision = wire::Frame::FLOAT32;
    // One of these, by the kind of bucket.
    wire::Payload dense;
    RowsPush rows;
    wire::Chunk buffers;
  };
  struct Round {
    mutable absl::Mutex mutex;
    std::vector<Contribution> contributions ABSL_GUARDED_BY(mutex);  // by rank; sync
    int arrived ABSL_GUARDED_BY(mutex) = 0;
    std::vector<int64_t> sequences ABSL_GUARDED_BY(mutex);  // next by rank; async, bounded
  };

  Generation(GenerationSpec spec, Schedule schedule, Members& members);
  bool shared_steps() const { return spec_.strategy == Strategy::kSync; }
  // All tasks are at most one version apart, so every version that a task may request is kept.
  bool lockstep() const { return shared_steps() && spec_.backup_tasks == 0; }
  bool is_buffers(int bucket) const {
    return !spec_.shape.is_dense(bucket) && !spec_.shape.is_table(bucket);
  }
  int Quorum(int bucket) const;
  absl::Status Check(int rank, const wire::Frame& frame, size_t bytes) const;
  absl::StatusOr<Contribution> Read(int rank, const wire::Frame& frame,
                                    wire::Payload payload) const;
  absl::Status PushSync(int rank, const wire::Frame& frame, Contribution contribution);
  absl::Status PushAsync(int rank, const wire::Frame& frame, Contribution contribution);
  void ApplyPushes(int bucket, std::vector<Contribution>& contributions);
  void ApplyRows(int bucket, absl::Span<const Contribution* const> contributions);
  absl::StatusOr<int64_t> KeptVersion(int bucket, int64_t wanted) const;
  void SendValues(int rank, int bucket, int64_t version);
  void CountAsync(int rank);
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
  // Buckets pushed in the current step, by rank. Kept when a task leaves: its pushes were applied
  // and are not applied again.
  std::vector<int> buckets_done_ ABSL_GUARDED_BY(claims_mutex_);
};

}  // namespace muster::train
