// An experiment's choices as the parts that carry them out take them.
#pragma once

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "nlohmann/json.hpp"
#include "train/optimizer.h"
#include "train/ps/generation_spec.h"
#include "train/wire/message.h"

namespace muster::train {

absl::StatusOr<OptimizerConfig> OptimizerOf(const TrainSpec& train);
nlohmann::json ScheduleOf(const TrainSpec& train);
// Of a checked experiment.
Strategy StrategyOf(const TrainSpec& train);
wire::Frame::Precision PrecisionOf(const TrainSpec& train);

// What is wrong with the numbers and names of an experiment, before anything is started.
absl::Status CheckExperiment(const Experiment& experiment);

}  // namespace muster::train
