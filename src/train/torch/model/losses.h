// Losses and metrics by their names in a job file.
//
// Losses and Metric::Add throw c10::Error if outputs and targets do not match, like models;
// CatchTorch() converts it to a status. A target is never broadcast against an output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/core/model_input.h"

namespace muster::train {

absl::StatusOr<Loss> LossByName(const std::string& name);
// Returns the dimension of the classes in the model's outputs: 1 for CrossEntropy, 2 for Ctc,
// nullopt for any other loss.
std::optional<int64_t> ClassDimension(const Loss& loss);

// The metric "loss" is the mean of `loss`.
absl::StatusOr<MetricSpec> MetricByName(const std::string& name, const Loss& loss);
// Returns the metric "loss": the mean of `loss` over examples.
MetricSpec MeanLoss(const Loss& loss);
// Returns the default metrics for targets of this kind, the most important first.
std::vector<MetricSpec> DefaultMetrics(const ModelInput& input);

}  // namespace muster::train
