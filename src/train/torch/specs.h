// Converts an experiment's specs to the configurations of the trainer's parts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "nlohmann/json.hpp"
#include "train/core/optimizer.h"
#include "train/ps/generation_spec.h"
#include "train/wire/message.h"

namespace muster::train {

absl::StatusOr<OptimizerConfig> OptimizerOf(const TrainSpec& train);
nlohmann::json ScheduleOf(const TrainSpec& train);
// REQUIRES: CheckExperiment() has returned OK.
Strategy StrategyOf(const TrainSpec& train);
wire::Frame::Precision PrecisionOf(const TrainSpec& train);

// Returns InvalidArgument if a number or name of the experiment is invalid.
absl::Status CheckExperiment(const Experiment& experiment);

// Returns the settings that affect the result of training, with the names of the job file:
// {"optimizer.learning_rate": 0.001, …}. Excludes the number of tasks, which may differ by run.
nlohmann::json SettingsOf(const Experiment& experiment);
// Returns "batch_size 64, was 32; seed 8, was 7"; "" if they are equal or one is unknown.
std::string DifferencesOf(const nlohmann::json& then, const nlohmann::json& now);

}  // namespace muster::train
