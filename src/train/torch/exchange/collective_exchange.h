// Exchange by all-reduce: every task holds all variables and updates them with the sum of all
// tasks' gradients. Also used by a single process. Variables must not be tables.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "train/core/optimizer.h"
#include "train/core/shard.h"
#include "train/torch/exchange/exchange.h"
#include "train/torch/exchange/rendezvous.h"
#include "train/torch/exchange/replica.h"

namespace c10d {
class Work;
}  // namespace c10d

namespace muster::train {

// A lost task cannot rejoin: errors are final, and the whole job restarts.
class CollectiveExchange final : public Exchange {
 public:
  struct Options {
    RendezvousOptions rendezvous;
    OptimizerConfig optimizer;
    nlohmann::json schedule;
    int64_t total_steps = 0;
    double clip_norm = 0;
    bool saves = false;  // TakeSnapshot will be called
    int64_t bucket_bytes = 8 << 20;
  };
  CollectiveExchange(Replica& replica, Options options);
  ~CollectiveExchange() override;

  absl::StatusOr<Progress> Join(FirstValues first) override;
  absl::StatusOr<bool> Begin(const std::vector<Batch>& batches) override;
  void OnGradient(int parameter) override;
  absl::StatusOr<Progress> Finish(bool skipped) override;
  const std::vector<ShardPlan>& plans() const override { return plans_; }
  absl::Status AwaitEnd() override { return Gather(); }
  absl::StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() override;
  absl::Status EndAt(int64_t step) override;
  absl::Status EndJob() override { return Gather(); }

 private:
  int world() const { return static_cast<int>(options_.rendezvous.tasks.size()); }
  bool alone() const { return world() == 1; }
  absl::Status Share(std::unique_ptr<ValueSource> first);
  // Returns once all tasks have called it.
  absl::Status Gather();
  void WaitFor(c10d::Work& work);
  // Returns the tasks that have not reached this point.
  std::string MissingPeers();
  void Broadcast(absl::Span<std::byte> bytes);
  void Launch(int bucket);
  void FillBucket(int bucket);
  absl::Status Reduce(bool skipped);
  const float* GradientOf(int bucket);
  float ClipScale(float scale) const;

  Replica& replica_;
  const Options options_;
  const std::vector<ShardPlan> plans_;
  std::unique_ptr<Shard> shard_;
  RendezvousResult rendezvous_;               // empty for a single process
  std::vector<std::vector<Piece>> pieces_;    // by bucket
  std::vector<std::vector<int>> buckets_of_;  // by parameter
  std::vector<int> waits_for_;                // parameters, by bucket
  // The gradients of all buckets, preceded by kHeader floats of flags, reduced with bucket 0.
  FlatMemory gradients_;
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
  int next_bucket_ = 0;  // all tasks reduce the buckets in the same order
  bool skipped_ = false;
  bool end_requested_ = false;
  int meetings_ = 0;  // calls of Gather()
  Progress progress_;
};

}  // namespace muster::train
