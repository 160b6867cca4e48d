#include "train/torch/train_input.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "data/input/random.h"
#include "train/torch/model/dataset_adapter.h"

namespace muster::train {

absl::StatusOr<std::unique_ptr<TrainInput>> TrainInput::Open(const Experiment& experiment,
                                                             const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(auto dataset, experiment.data("train"));
  return std::unique_ptr<TrainInput>(new TrainInput(experiment, environment, std::move(dataset)));
}

TrainInput::TrainInput(const Experiment& experiment, const Environment& environment,
                       std::shared_ptr<const data::Dataset> dataset)
    : experiment_(experiment),
      rank_(environment.Rank()),
      world_(static_cast<int>(environment.TrainingTasks().size())),
      dataset_(std::move(dataset)) {}

int64_t TrainInput::examples_per_step() const {
  return experiment_.train.batch_size * experiment_.train.accumulate;
}

absl::Status TrainInput::Check() const {
  return data::TrainStream(dataset_, {.batch_size = experiment_.train.batch_size}).status();
}

absl::Status TrainInput::Start(const Progress& progress) {
  const TrainSpec& train = experiment_.train;
  origin_ = progress.data;
  MUSTER_ASSIGN_OR_RETURN(stream_, data::TrainStream(dataset_, {.batch_size = train.batch_size,
                                                                .rank = std::max(0, rank_),
                                                                .world = world_,
                                                                .seed = experiment_.run.seed,
                                                                .shuffle = train.shuffle,
                                                                .base = origin_.base,
                                                                .prefetch = train.prefetch}));
  return Seek(progress.sequence);
}

absl::Status TrainInput::Seek(int64_t sequence) {
  return stream_->Seek((sequence - origin_.first) * experiment_.train.accumulate);
}

absl::StatusOr<std::vector<Batch>> TrainInput::Next() {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < experiment_.train.accumulate; ++i) {
    MUSTER_ASSIGN_OR_RETURN(data::Batch batch, stream_->Next());
    batches.push_back(ToTensors(std::move(batch)));
  }
  return batches;
}

// Depends only on the seed, the task and the batch, so that another process that recomputes the
// step gets the same result. The ranks of one sequence take 4096 consecutive numbers, which the
// golden-ratio multiplier spreads.
uint64_t TrainInput::SeedOf(int64_t sequence) const {
  return data::Mix(experiment_.run.seed +
                   0x9e3779b97f4a7c15 *
                       (static_cast<uint64_t>(sequence) * 4096 + static_cast<uint64_t>(rank_) + 1));
}

}  // namespace muster::train
