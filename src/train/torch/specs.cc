#include "train/torch/specs.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "train/core/schedule.h"

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

absl::Status AtLeastOne(absl::string_view what, const std::optional<int64_t>& value) {
  return AtLeast(what, static_cast<double>(value.value_or(1)), 1);
}

absl::Status CheckTrain(const TrainSpec& train) {
  MUSTER_RETURN_IF_ERROR(AtLeastOne("max_steps", train.max_steps));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("batch_size", train.batch_size));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("accumulate", train.accumulate));
  MUSTER_RETURN_IF_ERROR(AtLeast("backup_tasks", train.backup_tasks, 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("staleness", static_cast<double>(train.staleness), 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("clip_norm", train.clip_norm, 0));
  MUSTER_RETURN_IF_ERROR(AtLeast("prefetch", train.prefetch, 0));
  MUSTER_RETURN_IF_ERROR(
      OneOf("wire_precision", train.wire_precision, {"float32", "float16", "bfloat16"}));
  MUSTER_RETURN_IF_ERROR(OneOf("nan_guard", train.nan_guard, {"stop", "skip", "off"}));
  if (!train.strategy.empty()) MUSTER_RETURN_IF_ERROR(ParseStrategy(train.strategy).status());
  MUSTER_RETURN_IF_ERROR(OptimizerOf(train).status());
  return Schedule::FromJson(ScheduleOf(train), train.optimizer.learning_rate, train.max_steps)
      .status();
}

absl::Status CheckRun(const RunConfig& run) {
  MUSTER_RETURN_IF_ERROR(AtLeast("keep_checkpoint_max", run.keep_checkpoint_max, 1));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("save_checkpoints_steps", run.save_checkpoints_steps));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("save_checkpoints_secs", run.save_checkpoints_secs));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("save_summary_steps", run.save_summary_steps));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("log_step_count_steps", run.log_step_count_steps));
  for (const absl::Duration timeout : {run.start_timeout, run.peer_timeout}) {
    if (timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError("start_timeout and peer_timeout must be more than 0");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEvaluate(const EvalSpec& evaluate) {
  MUSTER_RETURN_IF_ERROR(AtLeastOne("evaluate.every_steps", evaluate.every_steps));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("evaluate.steps", evaluate.steps));
  MUSTER_RETURN_IF_ERROR(AtLeastOne("evaluate.batch_size", evaluate.batch_size));
  if (evaluate.start_delay < absl::ZeroDuration() || evaluate.throttle < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("evaluate.start_delay and .throttle must not be negative");
  }
  return absl::OkStatus();
}

// Converts {"a": {"b": 1}} to {"a.b": 1}.
void Flatten(const nlohmann::json& json, const std::string& prefix, nlohmann::json& to) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = absl::StrCat(prefix, key);
    if (value.is_object()) {
      Flatten(value, absl::StrCat(name, "."), to);
    } else {
      to[name] = value;
    }
  }
}

std::string TextOf(const nlohmann::json& settings, const std::string& key) {
  const auto value = settings.find(key);
  if (value == settings.end()) return "not set";
  if (value->is_string()) return value->get<std::string>();
  return value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  if (spec.warmup_steps != 0) json["warmup_steps"] = spec.warmup_steps;
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
  if (!experiment.model || !experiment.data || !experiment.loss) {
    return absl::InvalidArgumentError("an experiment needs a model, data and a loss");
  }
  for (const MetricSpec& metric : experiment.metrics) {
    if (!metric.make) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the metric '", metric.name, "' has no factory; TopK needs k of at least 1"));
    }
  }
  MUSTER_RETURN_IF_ERROR(CheckTrain(experiment.train));
  MUSTER_RETURN_IF_ERROR(CheckRun(experiment.run));
  return CheckEvaluate(experiment.evaluate);
}

nlohmann::json SettingsOf(const Experiment& experiment) {
  const TrainSpec& train = experiment.train;
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [name, value] : experiment.settings) settings[name] = value;
  const auto optimizer = OptimizerOf(train);
  nlohmann::json numbers = {
      {"seed", experiment.run.seed},        {"batch_size", train.batch_size},
      {"accumulate", train.accumulate},     {"clip_norm", train.clip_norm},
      {"weight_decay", train.weight_decay}, {"wire_precision", train.wire_precision},
      {"schedule", ScheduleOf(train)},      {"shuffle", train.shuffle}};
  if (optimizer.ok()) numbers["optimizer"] = optimizer->ToJson();
  // sync and allreduce compute the same result.
  const Strategy strategy = StrategyOf(train);
  if (strategy == Strategy::kAsync || strategy == Strategy::kBounded) {
    numbers["strategy"] = train.strategy;
  }
  if (strategy == Strategy::kBounded) numbers["staleness"] = train.staleness;
  if (train.backup_tasks > 0) numbers["backup_tasks"] = train.backup_tasks;
  if (!train.warm_start.empty()) numbers["warm_start"] = train.warm_start;
  Flatten(numbers, "", settings);
  return settings;
}

std::string DifferencesOf(const nlohmann::json& then, const nlohmann::json& now) {
  if (!then.is_object() || !now.is_object()) return "";
  std::set<std::string> keys;
  for (const auto& [key, value] : then.items()) keys.insert(key);
  for (const auto& [key, value] : now.items()) keys.insert(key);
  std::vector<std::string> differences;
  for (const std::string& key : keys) {
    // Optimizers of different types have different keys: report only the type.
    const std::string type = absl::StrCat(key.substr(0, key.rfind('.')), ".type");
    const bool of_one_only = then.contains(key) != now.contains(key);
    if (of_one_only && TextOf(then, type) != TextOf(now, type)) continue;
    const std::string before = TextOf(then, key), after = TextOf(now, key);
    if (before != after) differences.push_back(absl::StrCat(key, " ", after, ", was ", before));
  }
  return absl::StrJoin(differences, "; ");
}

}  // namespace muster::train
