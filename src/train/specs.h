// An experiment's choices as the parts that carry them out take them.
#pragma once

#include <string>

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

// What decides the result of training, by the names of the job file: {"optimizer.learning_rate":
// 0.001, …}. Not the number of tasks, which may change from run to run.
nlohmann::json SettingsOf(const Experiment& experiment);
// "batch_size 64, was 32; seed 8, was 7"; "" when they are the same, or one of them is not known.
std::string DifferencesOf(const nlohmann::json& then, const nlohmann::json& now);

}  // namespace muster::train
