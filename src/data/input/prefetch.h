// Makes batches in threads ahead of their use, and returns them in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "data/input/stream.h"

namespace muster::data {

// At most `depth` batches are ready or in progress, plus, after a Seek(), one per thread that was
// busy with an obsolete batch. The destructor waits for batches in progress only.
class Prefetcher : public BatchStream {
 public:
  // Makes the batch with a number. Must be thread-safe.
  using Make = std::function<absl::StatusOr<Batch>(int64_t sequence)>;

  // With a depth of 0 there are no threads, and Next() makes the batch itself.
  Prefetcher(Make make, int depth, int threads);
  ~Prefetcher() override;

  absl::StatusOr<Batch> Next() override;
  absl::Status Seek(int64_t sequence) override;

 private:
  using Slot = std::optional<absl::StatusOr<Batch>>;  // nullopt: in progress

  void Work();
  absl::StatusOr<Batch> MakeSafely(int64_t sequence) const;
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool FrontIsReady() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Make make_;
  const size_t depth_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;        // the number of slots_.front()
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // number of Seek()s
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: destroyed before the members that they use
};

}  // namespace muster::data
