// Streams of batches, which the trainer reads.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/input/batch.h"

namespace muster::data {

// A format without random access implements this directly. Not thread-safe.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Returns OutOfRange at the end of a finite stream. After an error, returns the same error until
  // Seek().
  virtual absl::StatusOr<Batch> Next() = 0;
  // Makes Next() return the batch with this number, counted from 0 on this task. Returns
  // InvalidArgument if it is negative.
  virtual absl::Status Seek(int64_t sequence) = 0;
};

struct StreamOptions {
  int64_t batch_size = 1;
  int rank = 0;
  int world = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t base = 0;  // the global position of sequence 0 of rank 0
  int prefetch = 4;  // batches made in advance; 0: made by Next(), without threads
  int threads = 1;   // for making batches
};

// Returns an endless stream for training. Batch k of rank r covers batch_size global positions from
// base + (k * world + r) * batch_size on. Position p is the example
// Permutation(size, seed, p / size)(p % size), or p % size without shuffling. So a batch depends
// only on these numbers, and in an epoch the ranks together read each example once. A batch may
// cover the end of one epoch and the beginning of the next.
//
// Returns InvalidArgument for invalid options and for a batch larger than the data set.
absl::StatusOr<std::unique_ptr<BatchStream>> TrainStream(std::shared_ptr<const Dataset> dataset,
                                                         StreamOptions options);

// Returns a stream of all examples once, in order; the last batch may be smaller. `prefetch` is as
// in StreamOptions.
absl::StatusOr<std::unique_ptr<BatchStream>> EvalStream(std::shared_ptr<const Dataset> dataset,
                                                        int64_t batch_size, int prefetch);

}  // namespace muster::data
