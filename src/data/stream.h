// Batches one after the other: what the trainer reads.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/batch.h"
#include "data/dataset.h"

namespace muster::data {

// A format without random access implements this directly. Used by one thread at a time.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // OutOfRange at the end of a stream that has one. After an error, the same error until Seek.
  virtual absl::StatusOr<Batch> Next() = 0;
  // The next batch is the one with this number, counted from 0 on this task. InvalidArgument when
  // it is negative.
  virtual absl::Status Seek(int64_t sequence) = 0;
};

struct StreamOptions {
  int64_t batch_size = 1;
  int rank = 0;
  int world = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t base = 0;  // the global position where sequence 0 of rank 0 begins
  int prefetch = 4;  // batches made ahead; 0: each when it is asked for, without a thread
  int threads = 1;   // that make them
};

// An endless stream for training. The batch with number k of rank r covers the global positions
// from base + (k * world + r) * batch_size on; position p is the example Permutation(size, seed, p
// / size)(p % size), or p % size when not shuffled. So the batch depends on these numbers alone,
// and in an epoch the ranks together see each example once. A batch may cover the end of one epoch
// and the beginning of the next.
//
// InvalidArgument for options that make no sense, and for a batch larger than the data set.
absl::StatusOr<std::unique_ptr<BatchStream>> TrainStream(std::shared_ptr<const Dataset> dataset,
                                                         StreamOptions options);

// All examples once, in their order; the last batch may be smaller. `prefetch` as above.
absl::StatusOr<std::unique_ptr<BatchStream>> EvalStream(std::shared_ptr<const Dataset> dataset,
                                                        int64_t batch_size, int prefetch);

}  // namespace muster::data
