#include "job/format/train_fields.h"

#include <utility>

#include "job/format/parse.h"

namespace muster::job {
namespace {

using Json = nlohmann::json;

// Below 2^53, so every count is exact as a double, the type of a field's limits.
constexpr double kMaxCount = 1e15;
constexpr double kMaxSecs = 1e9;

Field Text(const char* key, Json fallback = {}) {
  return {key, Field::Kind::kText, std::move(fallback)};
}
Field Path(const char* key) { return {key, Field::Kind::kPath}; }
Field Paths(const char* key) { return {key, Field::Kind::kPaths}; }
Field Features(const char* key, double max) { return {key, Field::Kind::kFeatures, {}, 1, max}; }
Field Flag(const char* key, Json fallback = {}) {
  return {key, Field::Kind::kBool, std::move(fallback)};
}
Field Int(const char* key, double min, double max, Json fallback = {}) {
  return {key, Field::Kind::kInt, std::move(fallback), min, max};
}
Field Sizes(const char* key, double max) { return {key, Field::Kind::kSizes, {}, 1, max}; }
Field Number(const char* key, double min, double max, Json fallback = {}) {
  return {key, Field::Kind::kNumber, std::move(fallback), min, max};
}
Field Choice(const char* key, std::vector<std::string> choices, Json fallback = {}) {
  return {key, Field::Kind::kChoice, std::move(fallback), 0, 0, std::move(choices)};
}
Field Choices(const char* key, std::vector<std::string> choices) {
  return {key, Field::Kind::kChoices, {}, 0, 0, std::move(choices)};
}

}  // namespace

const Fields& TrainFields() {
  static const auto& kFields = *new Fields{
      Int("batch_size", 1, 1'000'000, 32),
      Int("steps", 1, kMaxCount),
      Choice("strategy", {"sync", "async", "bounded", "allreduce"}),
      Int("staleness", 0, 1'000'000),
      Int("backup_tasks", 0, kMaxReplicas),
      Int("seed", 0, kMaxCount),
      Choice("loss", {"cross_entropy", "binary_cross_entropy", "mse", "mae", "huber", "ctc"}),
      Choices("metrics", {"accuracy", "top5_accuracy", "auc", "mse", "mae", "loss"}),
      Number("clip_norm", 0, kMaxCount),
      Number("weight_decay", 0, 1),
      Int("accumulate", 1, 1'000'000),
      Path("warm_start"),
      Choice("wire_precision", {"float32", "float16", "bfloat16"}),
      Choice("nan_guard", {"stop", "skip", "off"}, "stop"),
      Int("log_every_steps", 1, kMaxCount, 100),
  };
  return kFields;
}

const Fields& DataFields() {
  static const auto& kFields = *new Fields{
      Choice("format", {"mnist", "idx", "tfrecord", "synthetic"}),
      Paths("path"),
      Text("split", "train"),
      Flag("shuffle"),
      Int("prefetch", 0, 10'000),
      Int("examples", 1, kMaxCount),
      Choice("kind", {"images", "tabular", "tokens", "sequence"}),
      Int("classes", 2, 1e6),
      Features("features", 1e7),
      Int("length", 1, 1e7),
      Int("vocabulary", 2, 1e8),
      Sizes("shape", 1e6),
      Text("target"),
      Choice("on_error", {"fail", "skip"}),
      Choice("compression", {"none", "gzip", "zlib"}),
  };
  return kFields;
}

const Owners& FormatKeys() {
  static const auto& kKeys = *new Owners{
      {"path", {"mnist", "idx", "tfrecord"}},
      {"kind", {"synthetic"}},
      {"classes", {"tfrecord", "synthetic"}},
      {"features", {"tfrecord", "synthetic"}},
      {"length", {"synthetic"}},
      {"vocabulary", {"tfrecord", "synthetic"}},
      {"shape", {"synthetic"}},
      {"target", {"tfrecord"}},
      {"on_error", {"tfrecord"}},
      {"compression", {"tfrecord"}},
  };
  return kKeys;
}

const Owners& SyntheticKeys() {
  static const auto& kKeys = *new Owners{
      {"kind", {"images", "tabular", "tokens", "sequence"}},
      {"classes", {"images", "tabular", "tokens", "sequence"}},
      {"features", {"tabular", "sequence"}},
      {"length", {"tokens", "sequence"}},
      {"vocabulary", {"tokens"}},
      {"shape", {"images"}},
  };
  return kKeys;
}

const Fields& OptimizerFields() {
  static const auto& kFields = *new Fields{
      Choice("type", {"sgd", "adam", "adamw", "adagrad", "rmsprop"}, "sgd"),
      Number("learning_rate", 0, 1000, 0.01),
      Number("momentum", 0, 1),
      Flag("nesterov"),
      Number("beta1", 0, 1),
      Number("beta2", 0, 1),
      Number("epsilon", 0, 1),
      Number("decay", 0, 1),
  };
  return kFields;
}

const Owners& OptimizerKeys() {
  static const auto& kKeys = *new Owners{
      {"momentum", {"sgd", "rmsprop"}},
      {"nesterov", {"sgd"}},
      {"beta1", {"adam", "adamw"}},
      {"beta2", {"adam", "adamw"}},
      {"epsilon", {"adam", "adamw", "adagrad", "rmsprop"}},
      {"decay", {"rmsprop"}},
  };
  return kKeys;
}

const Fields& ScheduleFields() {
  static const auto& kFields = *new Fields{
      Choice("type", {"constant", "linear", "cosine", "exponential", "step"}, "constant"),
      Int("warmup_steps", 0, kMaxCount),
      Int("decay_steps", 1, kMaxCount),
      Number("decay_rate", 0, 1),
      Number("end_learning_rate", 0, 1000),
  };
  return kFields;
}

const Owners& ScheduleKeys() {
  static const auto& kKeys = *new Owners{
      {"decay_steps", {"linear", "cosine", "exponential", "step"}},
      {"decay_rate", {"exponential", "step"}},
      {"end_learning_rate", {"linear", "cosine", "exponential", "step"}},
  };
  return kKeys;
}

const Fields& CheckpointFields() {
  static const auto& kFields = *new Fields{
      Int("every_steps", 1, kMaxCount),
      Int("every_secs", 1, kMaxCount),
      Int("keep", 1, 1'000'000, 5),
  };
  return kFields;
}

const Fields& EvaluateFields() {
  static const auto& kFields = *new Fields{
      Int("every_steps", 1, kMaxCount),
      Int("every_secs", 1, kMaxCount),
      Text("split", "test"),
      Int("steps", 1, kMaxCount),
      Int("batch_size", 1, 1'000'000),
      Int("start_delay_secs", 0, kMaxSecs),
      Int("throttle_secs", 0, kMaxSecs),
  };
  return kFields;
}

const Fields& SummaryFields() {
  static const auto& kFields = *new Fields{
      Int("every_steps", 1, kMaxCount, 100),
      Flag("histograms", false),
  };
  return kFields;
}

const Fields& ExportFields() {
  static const auto& kFields = *new Fields{
      Choice("when", {"final", "latest", "best"}, "final"),
      Choice("format", {"torchscript", "safetensors"}, "torchscript"),
  };
  return kFields;
}

const Fields& EarlyStoppingFields() {
  static const auto& kFields = *new Fields{
      Int("patience", 1, kMaxCount),
      Number("min_delta", 0, kMaxCount, 0),
  };
  return kFields;
}

}  // namespace muster::job
