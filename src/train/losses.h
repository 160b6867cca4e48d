// Losses and metrics by their names in a job file.
//
// Losses and Metric::Add throw c10::Error where outputs and targets do not fit, as models do;
// CatchTorch makes a status of it. A target is never broadcast against an output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/model_input.h"

namespace muster::train {

absl::StatusOr<Loss> LossByName(const std::string& name);
// The dimension of the model's outputs in which a loss of classes has these: 1 of CrossEntropy,
// 2 of Ctc. nullopt: another loss, or one of the user's.
std::optional<int64_t> ClassDimension(const Loss& loss);

// `loss` is what the metric "loss" is the mean of.
absl::StatusOr<MetricSpec> MetricByName(const std::string& name, const Loss& loss);
// The mean over examples of what `loss` gives; "loss".
MetricSpec MeanLoss(const Loss& loss);
// What says most about targets of this kind.
std::vector<MetricSpec> DefaultMetrics(const ModelInput& input);

}  // namespace muster::train
