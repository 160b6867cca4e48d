#include "train/torch/evaluation.h"

#include <torch/utils.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/compare.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "data/dataset.h"
#include "data/input/stream.h"
#include "nlohmann/json.hpp"
#include "storage/storage.h"
#include "train/torch/earlier_run.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/export.h"
#include "train/torch/model/losses.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

constexpr absl::Duration kReportInterval = absl::Minutes(1);
constexpr int kPrefetch = 4;

NamedTensors AllTensors(Model& model) {
  NamedTensors tensors = model.Parameters();
  for (auto& buffer : model.Buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

absl::StatusOr<std::vector<base::TensorSpec>> SpecsOf(const NamedTensors& tensors) {
  std::vector<base::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) {
    MUSTER_ASSIGN_OR_RETURN(const base::DType dtype, DTypeOf(tensor.scalar_type()));
    specs.push_back({name, dtype, tensor.sizes().vec()});
  }
  return specs;
}

std::vector<MetricSpec> MetricsOf(const Experiment& experiment) {
  std::vector<MetricSpec> metrics = experiment.metrics;
  const bool has_loss = std::any_of(metrics.begin(), metrics.end(),
                                    [](const MetricSpec& spec) { return spec.name == "loss"; });
  if (!has_loss) metrics.push_back(MeanLoss(experiment.loss));
  return metrics;
}

// Calls `use` with each batch of a split, or with the first `limit`.
absl::Status ForEachBatch(const Experiment& experiment, const std::string& split,
                          std::optional<int64_t> limit, const std::function<void(Batch)>& use) {
  MUSTER_ASSIGN_OR_RETURN(const auto dataset, experiment.data(split));
  const int64_t batch_size = std::min(
      experiment.evaluate.batch_size.value_or(std::max<int64_t>(experiment.train.batch_size, 256)),
      dataset->size());
  MUSTER_ASSIGN_OR_RETURN(const auto stream, data::EvalStream(dataset, batch_size, kPrefetch));
  for (int64_t i = 0; !limit || i < *limit; ++i) {
    auto batch = stream->Next();
    if (absl::IsOutOfRange(batch.status())) break;
    MUSTER_RETURN_IF_ERROR(batch.status());
    MUSTER_RETURN_IF_ERROR(CatchTorch([&] { use(ToTensors(*std::move(batch))); }));
  }
  return absl::OkStatus();
}

std::optional<checkpoint::Entry> Newest(const std::string& model_dir) {
  std::optional<checkpoint::Entry> newest;
  for (checkpoint::Entry& entry : checkpoint::List(model_dir)) {
    if (entry.status.ok()) newest = std::move(entry);
  }
  return newest;
}

std::string CheckpointAfter(int64_t evaluated) {
  if (evaluated < 0) return "the first checkpoint";
  return absl::StrCat("a checkpoint after step ", evaluated);
}

std::string NameOf(Exporter::When when) {
  switch (when) {
    case Exporter::When::kFinal:
      return "final";
    case Exporter::When::kLatest:
      return "latest";
    case Exporter::When::kBest:
      return "best";
  }
  return "";
}

// Returns the dimension of the classes in the outputs, or nullopt if they are not classes.
std::optional<int64_t> ClassDimensionOf(const Loss& loss, const data::Dataset& dataset) {
  const auto dimension = ClassDimension(loss);
  if (dimension && !IsFloating(dataset.targets().dtype)) return dimension;
  if (dataset.classes() > 0) return 1;
  return std::nullopt;
}

// Formats a model's outputs as CSV: a class for each position of an example, or raw outputs.
class Predictions {
 public:
  explicit Predictions(std::optional<int64_t> class_dimension)
      : class_dimension_(class_dimension) {}

  void Add(const torch::Tensor& outputs) {
    const int64_t dimension = class_dimension_.value_or(-1);
    if (dimension >= 0 && dimension < outputs.dim() && outputs.size(dimension) > 1) {
      AddClasses(
          outputs.movedim(dimension, -1).reshape({outputs.size(0), -1, outputs.size(dimension)}));
    } else {
      AddNumbers(outputs.reshape({outputs.size(0), -1}).contiguous());
    }
  }

  std::string text() const { return header_.empty() ? "example,outputs\n" : header_ + lines_; }

 private:
  // [batch, positions, classes]
  void AddClasses(const torch::Tensor& logits) {
    const bool many = logits.size(1) > 1;
    header_ = many ? "example,position,class,probability\n" : "example,class,probability\n";
    const auto [probability, index] = torch::softmax(logits, 2).max(2);
    const auto probabilities = probability.accessor<float, 2>();
    const auto classes = index.accessor<int64_t, 2>();
    for (int64_t i = 0; i < logits.size(0); ++i, ++example_) {
      for (int64_t k = 0; k < logits.size(1); ++k) {
        absl::StrAppend(&lines_, example_, ",");
        if (many) absl::StrAppend(&lines_, k, ",");
        absl::StrAppendFormat(&lines_, "%d,%.6f\n", classes[i][k], probabilities[i][k]);
      }
    }
  }

  void AddNumbers(const torch::Tensor& outputs) {
    header_ = "example,outputs\n";
    const auto values = outputs.accessor<float, 2>();
    for (int64_t i = 0; i < outputs.size(0); ++i) {
      absl::StrAppend(&lines_, example_++);
      for (int64_t k = 0; k < outputs.size(1); ++k) {
        absl::StrAppendFormat(&lines_, ",%.6g", values[i][k]);
      }
      lines_.push_back('\n');
    }
  }

  const std::optional<int64_t> class_dimension_;
  int64_t example_ = 0;
  std::string header_;
  std::string lines_;
};

absl::Status ExportSafetensors(Model& model, const std::string& path) {
  NamedTensors tensors = AllTensors(model);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<base::TensorSpec> specs, SpecsOf(tensors));
  std::vector<absl::Span<const std::byte>> bytes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].second = tensors[i].second.detach().contiguous();
    bytes.emplace_back(static_cast<const std::byte*>(tensors[i].second.data_ptr()),
                       static_cast<size_t>(specs[i].bytes()));
  }
  return checkpoint::WriteSafetensors(path, specs, bytes, {{"format", "pt"}});
}

}  // namespace

absl::StatusOr<EvalResult> EvaluateModel(const Experiment& experiment, Model& model,
                                         const std::string& split) {
  torch::NoGradGuard no_grad;
  model.SetTraining(false);
  const std::vector<MetricSpec> specs = MetricsOf(experiment);
  std::vector<std::unique_ptr<Metric>> metrics;
  for (const MetricSpec& spec : specs) metrics.push_back(spec.make());
  EvalResult result;
  const auto add = [&](const Batch& batch) {
    const torch::Tensor outputs = model.Forward(batch.inputs);
    for (const auto& metric : metrics) metric->Add(outputs, batch);
    result.examples += batch.inputs.size(0);
  };
  const absl::Status status = ForEachBatch(experiment, split, experiment.evaluate.steps, add);
  model.SetTraining(true);
  MUSTER_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < specs.size(); ++i) {
    result.metrics.emplace_back(specs[i].name, metrics[i]->Value());
  }
  return result;
}

std::string ToString(const EvalResult& result, const std::string& name, const std::string& split) {
  std::vector<std::string> rest;
  for (size_t i = 1; i < result.metrics.size(); ++i) {
    rest.push_back(absl::StrFormat("%s %.4f", result.metrics[i].first, result.metrics[i].second));
  }
  return absl::StrFormat("%s %s: %.4f%s%s (step %d, %d examples of %s)", name,
                         result.metrics.front().first, result.metrics.front().second,
                         rest.empty() ? "" : ", ", absl::StrJoin(rest, ", "), result.step,
                         result.examples, split);
}

absl::Status PredictToFile(const Experiment& experiment, Model& model, const std::string& split,
                           const std::string& path) {
  torch::NoGradGuard no_grad;
  model.SetTraining(false);
  MUSTER_ASSIGN_OR_RETURN(const auto dataset, experiment.data(split));
  Predictions predictions(ClassDimensionOf(experiment.loss, *dataset));
  const absl::Status status =
      ForEachBatch(experiment, split, std::nullopt, [&](const Batch& batch) {
        predictions.Add(model.Forward(batch.inputs).to(torch::kFloat32));
      });
  model.SetTraining(true);
  MUSTER_RETURN_IF_ERROR(status);
  return storage::WriteAt(path, predictions.text());
}

absl::Status LoadCheckpoint(const checkpoint::Checkpoint& stored, Model& model) {
  const NamedTensors tensors = AllTensors(model);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<base::TensorSpec> specs, SpecsOf(tensors));
  const auto differences = checkpoint::Differences(specs, stored.weights());
  if (!differences.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(stored.folder(), " holds another model: ", absl::StrJoin(differences, "; ")));
  }
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(const auto bytes, stored.Weight(specs[i].name));
    torch::Tensor values = torch::empty_like(tensors[i].second, at::MemoryFormat::Contiguous);
    if (!bytes.empty()) std::memcpy(values.data_ptr(), bytes.data(), bytes.size());
    torch::Tensor(tensors[i].second).copy_(values);
  }
  return absl::OkStatus();
}

EvalRecorder::EvalRecorder(const Experiment& experiment, ModelDir& model_dir,
                           std::function<void(const std::string&)> log)
    : experiment_(experiment), model_dir_(model_dir), log_(std::move(log)) {}

absl::Status EvalRecorder::Evaluate(const checkpoint::Checkpoint& stored, Model& model,
                                    bool final) {
  MUSTER_RETURN_IF_ERROR(LoadCheckpoint(stored, model));
  MUSTER_ASSIGN_OR_RETURN(EvalResult result,
                          EvaluateModel(experiment_, model, experiment_.evaluate.split));
  result.step = stored.step();
  result.job = checkpoint::JobOf(stored.state());
  Record(result, model, final);
  return absl::OkStatus();
}

void EvalRecorder::Record(const EvalResult& result, Model& model, bool final) {
  log_(ToString(result, experiment_.name, experiment_.evaluate.split));
  if (model_dir_.folder().empty()) return;
  if (const absl::Status kept = Keep(result, model, final); !kept.ok()) {
    log_(absl::StrCat("the evaluation of step ", result.step, " could not be saved: ",
                      kept.message(), final ? "" : "; training continues"));
  }
}

absl::Status EvalRecorder::Keep(const EvalResult& result, Model& model, bool final) {
  MUSTER_RETURN_IF_ERROR(WriteResult(result));
  MUSTER_ASSIGN_OR_RETURN(const bool best, UpdateBest(result));
  for (const Exporter& exporter : experiment_.evaluate.exporters) {
    const bool due = exporter.when == Exporter::When::kLatest ||
                     (exporter.when == Exporter::When::kBest && best) ||
                     (exporter.when == Exporter::When::kFinal && final);
    if (due) MUSTER_RETURN_IF_ERROR(Export(exporter, model));
  }
  return absl::OkStatus();
}

absl::Status EvalRecorder::WriteResult(const EvalResult& result) {
  const std::string folder = base::JoinPath(model_dir_.folder(), "eval");
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder, 0755));
  nlohmann::json json = {{"name", experiment_.name},    {"step", result.step},
                         {"examples", result.examples}, {"split", experiment_.evaluate.split},
                         {"job", result.job},           {"metrics", nlohmann::json::array()}};
  // Opened late: the chief of a job that starts fresh moves the folder aside first.
  if (events_ == nullptr) {
    if (auto events = summary::EventWriter::Open(folder, "eval"); events.ok()) {
      events_ = *std::move(events);
    }
  }
  for (const auto& [name, value] : result.metrics) {
    json["metrics"].push_back({name, value});
    if (events_ != nullptr) events_->Scalar(name, result.step, value);
  }
  // Best effort: the files below hold the results.
  if (events_ != nullptr) events_->Flush().IgnoreError();
  MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(
      base::JoinPath(folder, absl::StrCat("step-", result.step, ".json")), json.dump(2), 0644));
  return base::WriteFileAtomically(base::JoinPath(folder, "latest.json"), json.dump(2), 0644);
}

// Compares by the first metric. Returns whether this result is the best.
absl::StatusOr<bool> EvalRecorder::UpdateBest(const EvalResult& result) {
  const MetricSpec metric = MetricsOf(experiment_).front();
  const double value = result.metrics.front().second;
  if (!std::isfinite(value)) return false;
  const auto best = checkpoint::ReadBest(model_dir_.folder());
  const bool better = !best.ok() || best->metric != metric.name ||
                      (metric.higher_is_better ? value > best->value : value < best->value);
  if (!better) return false;
  MUSTER_RETURN_IF_ERROR(
      checkpoint::WriteBest(model_dir_.folder(), {result.step, metric.name, value}));
  return true;
}

absl::Status EvalRecorder::Export(const Exporter& exporter, Model& model) {
  const std::string folder =
      base::JoinPath(base::JoinPath(model_dir_.folder(), "export"), NameOf(exporter.when));
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder, 0755));
  const bool safetensors = exporter.format == Exporter::Format::kSafetensors;
  MUSTER_ASSIGN_OR_RETURN(
      const std::string exported,
      ExportModel(experiment_, model,
                  base::JoinPath(folder, safetensors ? "model.safetensors" : "model.pt")));
  log_(absl::StrCat("exported ", exported));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ExportModel(const Experiment& experiment, Model& model,
                                        const std::string& path) {
  if (path.ends_with(".safetensors")) {
    MUSTER_RETURN_IF_ERROR(ExportSafetensors(model, path));
    return path;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto dataset, experiment.data(experiment.evaluate.split));
  data::Batch example;
  MUSTER_RETURN_IF_ERROR(dataset->Read({0}, example));
  const Batch batch = ToTensors(std::move(example));
  MUSTER_ASSIGN_OR_RETURN(const ExportedModel exported,
                          ExportTorchScript(model, batch.inputs, path));
  return absl::StrCat(path,
                      exported.any_batch_size ? "" : " (accepts only batches of one example)");
}

// Polls for the newest checkpoint; those in between are skipped, so a slow evaluator does not fall
// behind. `every_steps` and `throttle` delay an evaluation, but never that of the last checkpoint.
absl::Status EvaluateUntilFinal(const Experiment& experiment, const Environment& environment,
                                ModelDir& model_dir,
                                const std::function<void(const std::string&)>& log) {
  const std::string& job_id = environment.job_id;
  if (model_dir.folder().empty()) {
    return absl::InvalidArgumentError("an evaluator needs a model_dir to read checkpoints from");
  }
  torch::manual_seed(experiment.run.seed);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, experiment.model());
  EvalRecorder recorder(experiment, model_dir, log);
  int64_t evaluated = -1;
  absl::SleepFor(experiment.evaluate.start_delay);
  absl::Time not_before = absl::InfinitePast();
  absl::Time report_at = base::Clock::Real().Now() + kReportInterval;
  for (;; absl::SleepFor(model_dir.poll_interval())) {
    if (const absl::Status status = model_dir.Follow(); !status.ok()) {
      log(absl::StrCat("cannot list checkpoints: ", status.message(), "; retrying"));
      continue;
    }
    const std::optional<checkpoint::Entry> newest = Newest(model_dir.folder());
    if (base::Clock::Real().Now() >= report_at) {
      report_at = base::Clock::Real().Now() + kReportInterval;
      log(absl::StrCat("waiting for ", CheckpointAfter(evaluated), " in ", model_dir.place()));
    }
    if (!newest || newest->step <= evaluated) continue;
    const bool may_be_last = newest->final || newest->step >= experiment.train.max_steps;
    const bool too_soon =
        newest->step - evaluated < experiment.evaluate.every_steps.value_or(0) && evaluated >= 0;
    if (!may_be_last && (too_soon || base::Clock::Real().Now() < not_before)) continue;
    const auto stored = checkpoint::Checkpoint::Open(newest->folder);
    const bool of_this_job =
        job_id.empty() || (stored.ok() && checkpoint::JobOf(stored->state()) == job_id);
    const auto& resume_step = environment.resume_step;
    const bool to_be_set_aside = resume_step && newest->step > *resume_step && !of_this_job;
    if (to_be_set_aside) continue;  // the chief is about to move it
    not_before = base::Clock::Real().Now() + experiment.evaluate.throttle;
    report_at = base::Clock::Real().Now() + kReportInterval;
    // Also for a checkpoint that cannot be opened: it is not tried again.
    evaluated = newest->step;
    if (!stored.ok()) {  // removed or damaged meanwhile: wait for the next
      log(absl::StrCat("cannot evaluate step ", newest->step, ": ", stored.status().message()));
      continue;
    }
    // The final checkpoint of an earlier, shorter job is not the final one of this job.
    const bool is_last =
        newest->step >= experiment.train.max_steps || (newest->final && of_this_job);
    // A result of other settings must not be attributed to this job.
    if (is_last && !of_this_job) {
      MUSTER_RETURN_IF_ERROR(CheckEarlierRun(model_dir, experiment, log));
    }
    MUSTER_RETURN_IF_ERROR(recorder.Evaluate(*stored, *model, is_last));
    const absl::Status sent = model_dir.SendRest();
    model_dir.Forget(evaluated);
    if (is_last) return sent;
    if (!sent.ok()) {
      log(absl::StrCat("the results of step ", evaluated, " could not be sent: ", sent.message()));
    }
  }
}

}  // namespace muster::train
