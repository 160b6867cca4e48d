#include "train/specs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

absl::Status OneOf(absl::string_view what, const std::string& value,
                   std::vector<std::string> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is '", value, "'; it must be ", absl::StrJoin(choices, ", ")));
}

absl::Status AtLeast(absl::string_view what, double value, double least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, "; it must be at least ", least));
}

}  // namespace

absl::StatusOr<OptimizerConfig> OptimizerOf(const TrainSpec& train) {
  const OptimizerSpec& spec = train.optimizer;
  nlohmann::json json = {{"type", spec.type}, {"learning_rate", spec.learning_rate}};
  const bool adam = spec.type == "adam" || spec.type == "adamw";
  if (adam) {
    json["beta1"] = spec.beta1;
    json["beta2"] = spec.beta2;
  }
  if (spec.type == "rmsprop") json["decay"] = spec.decay;
  if (spec.momentum != 0) json["momentum"] = spec.momentum;
  if (spec.nesterov) json["nesterov"] = true;
  if (spec.epsilon.has_value()) json["epsilon"] = *spec.epsilon;
  return OptimizerConfig::FromJson(json, train.weight_decay);
}

nlohmann::json ScheduleOf(const TrainSpec& train) {
  const ScheduleSpec& spec = train.schedule;
  nlohmann::json json = {{"type", spec.type}};
  if (spec.warmup_steps > 0) json["warmup_steps"] = spec.warmup_steps;
  if (spec.decay_steps.has_value()) json["decay_steps"] = *spec.decay_steps;
  if (spec.decay_rate.has_value()) json["decay_rate"] = *spec.decay_rate;
  if (spec.end_learning_rate != 0) json["end_learning_rate"] = spec.end_learning_rate;
  return json;
}

Strategy StrategyOf(const TrainSpec& train) {
  return ParseStrategy(train.strategy).value_or(Strategy::kSync);
}

wire::Frame::Precision PrecisionOf(const TrainSpec& train) {
  if (train.wire_precision == "float16") return wire::Frame::FLOAT16;
  if (train.wire_precision == "bfloat16") return wire::Frame::BFLOAT16;
  return wire::Frame::FLOAT32;
}

absl::Status CheckExperiment(const Experiment& experiment) {
  const TrainSpec& train = experiment.train;
  if (!experiment.model || !experiment.data || !experiment.loss) {
    return absl::InvalidArgumentError("an experiment needs a model, data and a loss");
  }
  MUSTER_RETURN_IF_ERROR(AtLeast("max_steps", static_cast<double>(train.max_steps), 1));
  MUSTER_RETURN_IF_ERROR(AtLeast("batch_size", static_cast<double>(train.batch_size), 1));
  MUSTER_RETURN_IF_ERROR(AtLeast("accumulate", static_cast<double>(train.accumulate), 1));
  MUSTER_RETURN_IF_ERROR(AtLeast("backup_tasks", train.backup_tasks, 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("staleness", static_cast<double>(train.staleness), 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("clip_norm", train.clip_norm, 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("keep_checkpoint_max", experiment.run.keep_checkpoint_max, 1));
  if (const auto& every = experiment.run.save_checkpoints_steps) {
    MUSTER_RETURN_IF_ERROR(AtLeast("save_checkpoints_steps", static_cast<double>(*every), 1));
  }
  MUSTER_RETURN_IF_ERROR(
      AtLeast("save_summary_steps", static_cast<double>(experiment.run.save_summary_steps), 1));
  MUSTER_RETURN_IF_ERROR(
      AtLeast("log_step_count_steps", static_cast<double>(experiment.run.log_step_count_steps), 1));
  MUSTER_RETURN_IF_ERROR(
      OneOf("wire_precision", train.wire_precision, {"float32", "float16", "bfloat16"}));
  MUSTER_RETURN_IF_ERROR(OneOf("nan_guard", train.nan_guard, {"stop", "skip", "off"}));
  if (!train.strategy.empty()) MUSTER_RETURN_IF_ERROR(ParseStrategy(train.strategy).status());
  return OptimizerOf(train).status();
}

}  // namespace muster::train
