// The batches that a task trains on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/input/stream.h"
#include "muster/train.h"
#include "train/core/values.h"
#include "train/run/environment.h"

namespace muster::train {

// Not thread-safe.
class TrainInput {
 public:
  // Opens the data set. `experiment` must outlive this object.
  static absl::StatusOr<std::unique_ptr<TrainInput>> Open(const Experiment& experiment,
                                                          const Environment& environment);

  const data::Dataset& dataset() const { return *dataset_; }
  int rank() const { return rank_; }    // of this task among those that train; -1 = none
  int world() const { return world_; }  // how many tasks train
  int64_t examples_per_step() const;    // of this task
  // Returns the batches that Start() began with.
  const DataOrigin& origin() const { return origin_; }

  // Returns an error if the data cannot be read in batches. To fail early: Start() returns the
  // same.
  absl::Status Check() const;
  // Begins at the position of `progress`.
  absl::Status Start(const Progress& progress);
  // Moves to the batches that follow `sequence` contributions of this task. REQUIRES: Start() was
  // called.
  absl::Status Seek(int64_t sequence);
  // Returns the batches of one step. REQUIRES: Start() was called.
  absl::StatusOr<std::vector<Batch>> Next();

  // Returns the seed of the random numbers of a step.
  uint64_t SeedOf(int64_t sequence) const;

 private:
  TrainInput(const Experiment& experiment, const Environment& environment,
             std::shared_ptr<const data::Dataset> dataset);

  const Experiment& experiment_;
  const int rank_;
  const int world_;
  const std::shared_ptr<const data::Dataset> dataset_;
  std::unique_ptr<data::BatchStream> stream_;
  DataOrigin origin_;
};

}  // namespace muster::train
