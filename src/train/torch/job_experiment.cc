#include "train/torch/job_experiment.h"

#include <cstdio>
#include <limits>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/open.h"
#include "storage/local_copy.h"
#include "train/core/config_section.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/losses.h"
#include "train/torch/model/models.h"

namespace muster::train {
namespace {

using Json = nlohmann::json;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Reads `key` into `to`, which stays unchanged if the key is absent.
template <typename T>
absl::Status Get(const Json& section, const char* key, T& to) {
  if (!section.is_object() || !section.contains(key)) return absl::OkStatus();
  try {
    to = section.at(key)
             .get<typename std::conditional_t<
                 std::is_same_v<T, std::optional<int64_t>>, int64_t,
                 std::conditional_t<std::is_same_v<T, std::optional<double>>, double, T>>>();
    return absl::OkStatus();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", key, "' of the train configuration has the wrong type"));
  }
}

void Print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

Json Section(const Json& train, const char* key) {
  return train.contains(key) ? train[key] : Json::object();
}

// Returns the settings of the data that affect the result.
std::map<std::string, std::string> DataSettings(const Json& data) {
  std::map<std::string, std::string> settings;
  for (const auto& [key, value] : data.items()) {
    if (key == "prefetch" || key == "shuffle") continue;
    settings[absl::StrCat("data.", key)] =
        value.is_string() ? value.get<std::string>()
                          : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return settings;
}

absl::Status ReadRun(const Json& train, RunConfig& run) {
  const Json checkpoint = Section(train, "checkpoint");
  const Json summary = Section(train, "summary");
  MUSTER_RETURN_IF_ERROR(Get(train, "seed", run.seed));
  MUSTER_RETURN_IF_ERROR(Get(train, "log_every_steps", run.log_step_count_steps));
  MUSTER_RETURN_IF_ERROR(Get(checkpoint, "every_steps", run.save_checkpoints_steps));
  MUSTER_RETURN_IF_ERROR(Get(checkpoint, "every_secs", run.save_checkpoints_secs));
  MUSTER_RETURN_IF_ERROR(Get(checkpoint, "keep", run.keep_checkpoint_max));
  MUSTER_RETURN_IF_ERROR(Get(summary, "every_steps", run.save_summary_steps));
  return Get(summary, "histograms", run.save_histograms);
}

absl::Status ReadOptimizer(const Json& train, TrainSpec& spec) {
  const Json optimizer = Section(train, "optimizer");
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "type", spec.optimizer.type));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "learning_rate", spec.optimizer.learning_rate));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "momentum", spec.optimizer.momentum));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "nesterov", spec.optimizer.nesterov));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "beta1", spec.optimizer.beta1));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "beta2", spec.optimizer.beta2));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "epsilon", spec.optimizer.epsilon));
  MUSTER_RETURN_IF_ERROR(Get(optimizer, "decay", spec.optimizer.decay));
  const Json schedule = Section(train, "schedule");
  MUSTER_RETURN_IF_ERROR(Get(schedule, "type", spec.schedule.type));
  MUSTER_RETURN_IF_ERROR(Get(schedule, "warmup_steps", spec.schedule.warmup_steps));
  MUSTER_RETURN_IF_ERROR(Get(schedule, "decay_steps", spec.schedule.decay_steps));
  MUSTER_RETURN_IF_ERROR(Get(schedule, "decay_rate", spec.schedule.decay_rate));
  return Get(schedule, "end_learning_rate", spec.schedule.end_learning_rate);
}

absl::Status ReadSpec(const Json& train, TrainSpec& spec) {
  MUSTER_RETURN_IF_ERROR(Get(train, "steps", spec.max_steps));
  MUSTER_RETURN_IF_ERROR(Get(train, "batch_size", spec.batch_size));
  MUSTER_RETURN_IF_ERROR(Get(train, "strategy", spec.strategy));
  MUSTER_RETURN_IF_ERROR(Get(train, "staleness", spec.staleness));
  MUSTER_RETURN_IF_ERROR(Get(train, "backup_tasks", spec.backup_tasks));
  MUSTER_RETURN_IF_ERROR(Get(train, "accumulate", spec.accumulate));
  MUSTER_RETURN_IF_ERROR(Get(train, "clip_norm", spec.clip_norm));
  MUSTER_RETURN_IF_ERROR(Get(train, "weight_decay", spec.weight_decay));
  MUSTER_RETURN_IF_ERROR(Get(train, "wire_precision", spec.wire_precision));
  MUSTER_RETURN_IF_ERROR(Get(train, "nan_guard", spec.nan_guard));
  MUSTER_RETURN_IF_ERROR(Get(train, "warm_start", spec.warm_start));
  MUSTER_RETURN_IF_ERROR(Get(Section(train, "data"), "shuffle", spec.shuffle));
  MUSTER_RETURN_IF_ERROR(Get(Section(train, "data"), "prefetch", spec.prefetch));
  if (train.contains("early_stopping")) {
    int64_t patience = kNever;
    double min_delta = 0;
    MUSTER_RETURN_IF_ERROR(Get(train["early_stopping"], "patience", patience));
    MUSTER_RETURN_IF_ERROR(Get(train["early_stopping"], "min_delta", min_delta));
    spec.hooks.push_back(EarlyStopping(patience, min_delta));
  }
  return ReadOptimizer(train, spec);
}

absl::Status ReadEvaluate(const Json& train, EvalSpec& spec) {
  if (train.value("evaluate", Json()) == "off") {
    spec.enabled = false;
    return absl::OkStatus();
  }
  const Json evaluate = Section(train, "evaluate");
  int64_t start_delay = 0;
  int64_t throttle = 0;
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "split", spec.split));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "steps", spec.steps));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "batch_size", spec.batch_size));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "start_delay_secs", start_delay));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "every_secs", throttle));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "throttle_secs", throttle));
  MUSTER_RETURN_IF_ERROR(Get(evaluate, "every_steps", spec.every_steps));
  spec.start_delay = absl::Seconds(start_delay);
  spec.throttle = absl::Seconds(throttle);
  if (!train.contains("export")) return absl::OkStatus();
  std::string when = "final", format = "torchscript";
  Exporter exporter;
  MUSTER_RETURN_IF_ERROR(Get(train["export"], "when", when));
  MUSTER_RETURN_IF_ERROR(Get(train["export"], "format", format));
  exporter.when = when == "best"     ? Exporter::When::kBest
                  : when == "latest" ? Exporter::When::kLatest
                                     : Exporter::When::kFinal;
  exporter.format =
      format == "safetensors" ? Exporter::Format::kSafetensors : Exporter::Format::kTorchScript;
  spec.exporters.push_back(exporter);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Experiment> ExperimentOf(const Json& train, const std::string& job_name) {
  Experiment experiment;
  MUSTER_ASSIGN_OR_RETURN(const data::DataConfig data,
                          data::ParseDataConfig(Section(train, "data")));
  experiment.name = data.format == "mnist" ? "MNIST" : job_name.empty() ? "model" : job_name;
  // Remote data is copied once, so that later changes there do not affect this process.
  auto local = std::make_shared<std::map<std::string, data::DataConfig>>();
  experiment.data =
      [data,
       local](const std::string& split) -> absl::StatusOr<std::shared_ptr<const data::Dataset>> {
    auto found = local->find(split);
    if (found == local->end()) {
      data::DataConfig config = data;
      if (split != "train") config.split = split;  // the section's own split is for training
      MUSTER_ASSIGN_OR_RETURN(config, data::Localized(config, Print));
      found = local->emplace(split, config).first;
    }
    auto dataset = data::OpenDataset(found->second);
    if (dataset.ok()) {
      for (const std::string& note : (*dataset)->notes()) Print(absl::StrCat("warning: ", note));
    }
    return dataset;
  };
  MUSTER_ASSIGN_OR_RETURN(const auto dataset, experiment.data("train"));
  std::string loss, model;
  std::vector<std::string> metrics;
  MUSTER_RETURN_IF_ERROR(Get(train, "loss", loss));
  MUSTER_RETURN_IF_ERROR(Get(train, "model", model));
  MUSTER_RETURN_IF_ERROR(Get(train, "metrics", metrics));
  experiment.settings = DataSettings(Section(train, "data"));
  experiment.settings["model"] = model;
  MUSTER_ASSIGN_OR_RETURN(model, storage::FetchToLocal(model, Print));
  const ModelInput input = InputOf(*dataset, loss);
  if (loss.empty()) loss = DefaultLossName(input);
  experiment.settings["loss"] = loss;
  experiment.model = [model, input] { return MakeModel(model, input); };
  MUSTER_ASSIGN_OR_RETURN(experiment.loss, LossByName(loss));
  if (metrics.empty()) experiment.metrics = DefaultMetrics(input);
  for (const std::string& name : metrics) {
    MUSTER_ASSIGN_OR_RETURN(MetricSpec metric, MetricByName(name, experiment.loss));
    experiment.metrics.push_back(std::move(metric));
  }
  MUSTER_RETURN_IF_ERROR(ReadRun(train, experiment.run));
  MUSTER_RETURN_IF_ERROR(ReadSpec(train, experiment.train));
  MUSTER_RETURN_IF_ERROR(ReadEvaluate(train, experiment.evaluate));
  return experiment;
}

}  // namespace muster::train
