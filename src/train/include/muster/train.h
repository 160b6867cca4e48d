// Muster's trainer as a library: describe an experiment, call Main().
//
//   int main(int argc, char** argv) {
//     muster::train::Experiment experiment;
//     experiment.name = "digits";
//     experiment.model = muster::train::FromModule<Net>();      // Net: a torch::nn::Module
//     experiment.data = muster::train::OpenData({.format = "mnist", .path = "data/mnist"});
//     experiment.loss = muster::train::CrossEntropy();
//     experiment.train.max_steps = 2000;
//     return muster::train::Main(argc, argv, experiment);
//   }
//
// Every task of a job runs the same program. It reads its role and the addresses of the others from
// TF_CONFIG or from --job_name --task_index --ps_hosts --worker_hosts. Without either it trains as
// a single process.
//
// This header includes only the parts of torch that it needs; a file that defines a module includes
// <torch/torch.h>. Not thread-safe unless stated otherwise.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::data {
class Dataset;
}  // namespace muster::data

namespace muster::train {

// ---------------------------------------------------------------------------------------------
// The model

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// The rows of an embedding table that a batch uses. The table must be a parameter of shape
// [rows, width] with sparse gradients; only these rows are exchanged with the ps.
struct RowUse {
  std::string parameter;
  torch::Tensor rows;  // int64, any shape, repetitions allowed
};

class Model {
 public:
  virtual ~Model() = default;

  // Throws c10::Error if the inputs do not match, as torch does; the trainer reports it.
  virtual torch::Tensor Forward(const torch::Tensor& inputs) = 0;
  // Return the trained parameters, and the other tensors of the model (e.g. running means), in the
  // order of definition. The order must be the same in every task.
  virtual NamedTensors Parameters() = 0;
  virtual NamedTensors Buffers() = 0;
  virtual void SetTraining(bool on) = 0;
  virtual std::vector<RowUse> RowsNeeded(const torch::Tensor& /*inputs*/) { return {}; }
};

// Creates the model. Called after seeding torch's generator, so that the seed determines the
// initial values.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>()>;

// A torch::nn::Module with `torch::Tensor forward(torch::Tensor)`.
template <typename Net>
class ModuleModel : public Model {
 public:
  explicit ModuleModel(std::shared_ptr<Net> net) : net_(std::move(net)) {}

  torch::Tensor Forward(const torch::Tensor& inputs) override { return net_->forward(inputs); }
  NamedTensors Parameters() override { return OfParameters(/*frozen=*/false); }
  // Includes parameters that do not require gradients.
  NamedTensors Buffers() override {
    NamedTensors tensors = OfParameters(/*frozen=*/true);
    for (const auto& item : net_->named_buffers()) tensors.emplace_back(item.key(), item.value());
    return tensors;
  }
  void SetTraining(bool on) override { net_->train(on); }

 protected:
  const std::shared_ptr<Net>& net() const { return net_; }

 private:
  NamedTensors OfParameters(bool frozen) const {
    NamedTensors tensors;
    for (const auto& item : net_->named_parameters()) {
      if (item.value().requires_grad() != frozen) tensors.emplace_back(item.key(), item.value());
    }
    return tensors;
  }

  std::shared_ptr<Net> net_;
};

template <typename Net, typename... Args>
ModelFactory FromModule(Args... args) {
  return [args...]() -> absl::StatusOr<std::unique_ptr<Model>> {
    return std::make_unique<ModuleModel<Net>>(std::make_shared<Net>(args...));
  };
}

// ---------------------------------------------------------------------------------------------
// Data, losses, metrics

struct Batch {
  torch::Tensor inputs;
  torch::Tensor targets;
};

// Opens the data of a split ("train", "test", …).
using DataFactory =
    std::function<absl::StatusOr<std::shared_ptr<const data::Dataset>>(const std::string& split)>;

struct DataSource {
  std::string format;  // mnist, idx, synthetic
  std::string path;
};
DataFactory OpenData(const DataSource& source);

// Returns data from tensors whose first dimension is the example: `train` for the split "train",
// `test` for all others.
DataFactory FromTensors(const Batch& train, const Batch& test);

// Returns the loss of a batch. Built-in losses throw c10::Error if outputs and targets do not
// match; a target is never broadcast. An exception of a user's loss ends the task with its message.
using Loss = std::function<torch::Tensor(const torch::Tensor& outputs, const Batch& batch)>;
Loss CrossEntropy();
Loss BinaryCrossEntropy();  // of logits
Loss MeanSquaredError();
Loss MeanAbsoluteError();
Loss Huber();
// Outputs [batch, time, classes]; targets [batch, length], where 0 is the blank and the padding.
Loss Ctc();

// Accumulates over the batches of an evaluation.
class Metric {
 public:
  virtual ~Metric() = default;
  // Throws like a loss.
  virtual void Add(const torch::Tensor& outputs, const Batch& batch) = 0;
  virtual double Value() const = 0;  // NaN if undefined
};

struct MetricSpec {
  std::string name;
  bool higher_is_better = true;
  std::function<std::unique_ptr<Metric>()> make;
};
MetricSpec Accuracy();
MetricSpec TopK(int k);  // REQUIRES: k >= 1
MetricSpec Auc();
MetricSpec MeanAbsoluteErrorMetric();
MetricSpec MeanSquaredErrorMetric();

// ---------------------------------------------------------------------------------------------
// The run

struct RunConfig {
  std::string model_dir;  // checkpoints, summaries, exports; MUSTER_MODEL_DIR overrides it
  uint64_t seed = 0;
  int64_t save_summary_steps = 100;
  bool save_histograms = false;  // of the parameters, with the summaries
  int64_t log_step_count_steps = 100;
  // Set at most one; the default is every 600 s.
  std::optional<int64_t> save_checkpoints_steps;
  std::optional<int64_t> save_checkpoints_secs;
  int keep_checkpoint_max = 5;
  // Timeout for tasks to find each other at the start.
  absl::Duration start_timeout = absl::Minutes(5);
  // Timeout after that: for a peer's step, a chief that evaluates, a task that restarts.
  absl::Duration peer_timeout = absl::Minutes(30);
};

struct OptimizerSpec {
  std::string type = "sgd";  // sgd, adam, adamw, adagrad, rmsprop
  double learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::optional<double> epsilon;
  double decay = 0.99;  // of rmsprop's mean square
};

struct ScheduleSpec {
  std::string type = "constant";  // constant, linear, cosine, exponential, step
  int64_t warmup_steps = 0;
  std::optional<int64_t> decay_steps;
  std::optional<double> decay_rate;
  double end_learning_rate = 0;
};

class Hook;

struct TrainSpec {
  int64_t max_steps = 0;    // of the whole job, exactly
  int64_t batch_size = 32;  // per task
  std::string strategy;   // sync, async, bounded, allreduce; "": sync with ps tasks, else allreduce
  int64_t staleness = 3;  // bounded: how many steps a task may be ahead of the slowest
  int backup_tasks = 0;   // sync: gradients that a step does not wait for
  int64_t accumulate = 1;  // batches per gradient
  double clip_norm = 0;    // 0: no clipping
  double weight_decay = 0;
  std::string wire_precision = "float32";  // of gradients sent to a ps; or float16, bfloat16
  std::string nan_guard = "stop";          // stop, skip, off
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  bool shuffle = true;
  int prefetch = 4;  // batches prepared in advance
  // A checkpoint folder or model dir: its tensors with the same name and shape are the initial
  // values.
  std::string warm_start;
  std::vector<std::shared_ptr<Hook>> hooks;
};

struct Exporter {
  enum class When { kFinal, kLatest, kBest };
  enum class Format { kTorchScript, kSafetensors };
  When when = When::kFinal;  // kBest: by the experiment's first metric
  Format format = Format::kTorchScript;
};

struct EvalSpec {
  bool enabled = true;
  std::string split = "test";
  std::optional<int64_t> steps;  // batches; absent: all
  // Evaluate a checkpoint if it is this many steps after the last one evaluated. Absent: evaluate
  // each. The final checkpoint is always evaluated.
  std::optional<int64_t> every_steps;
  std::optional<int64_t> batch_size;
  absl::Duration start_delay;
  absl::Duration throttle;  // at most one evaluation in this time
  std::vector<Exporter> exporters;
};

// The run, as a hook sees it.
class RunContext {
 public:
  virtual ~RunContext() = default;
  virtual int64_t step() const = 0;  // completed steps
  virtual const std::string& task() const = 0;
  virtual bool is_chief() const = 0;
  virtual Model& model() = 0;
  // On the chief, ends the whole job after this step: a checkpoint is saved and every task exits.
  // Ignored on other tasks.
  virtual void RequestStop(const std::string& reason) = 0;
  // On the chief, adds a value to the summaries. Ignored on other tasks.
  virtual void AddScalar(const std::string& tag, double value) = 0;
};

struct StepResult {
  int64_t step = 0;  // completed steps, this one included
  double loss = 0;
  int64_t examples = 0;  // of this task
  absl::Duration input_time, compute_time, exchange_time;
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void Begin(RunContext&) {}
  virtual void BeforeStep(RunContext&) {}
  virtual void AfterStep(RunContext&, const StepResult&) {}
  virtual void AfterSave(RunContext&, const std::string& /*checkpoint*/) {}
  virtual void End(RunContext&) {}
};

// Stops the job if the chief's loss has not improved by `min_delta` for `patience` steps.
std::shared_ptr<Hook> EarlyStopping(int64_t patience, double min_delta = 0);
// Writes the time of each step for input, computation and exchange as a Chrome trace.
std::shared_ptr<Hook> Profiler(const std::string& path, int64_t first_step, int64_t steps);

struct Experiment {
  std::string name = "model";
  // Further settings that affect the result, e.g. {"model", "resnet18"}. Stored in the checkpoints
  // with the numbers below, so that a later run in the same model dir reports differences.
  std::map<std::string, std::string> settings;
  ModelFactory model;
  DataFactory data;
  Loss loss;
  std::vector<MetricSpec> metrics;
  RunConfig run;
  TrainSpec train;
  EvalSpec evaluate;
};

// Runs this process's task of the experiment and returns the exit code. Also accepts the commands
// `evaluate`, `predict` and `export` as first argument; see --help.
int Main(int argc, char** argv, const Experiment& experiment);

}  // namespace muster::train
