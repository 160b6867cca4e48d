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
// The same program is every task of a job: which one it is, and where the others are, it learns
// from TF_CONFIG or from --job_name --task_index --ps_hosts --worker_hosts. Alone, it is all of
// them.
//
// Includes what it needs of torch only: a file that defines a module includes <torch/torch.h>.
// Nothing here is safe to call from several threads unless it says so.
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

// The rows of an embedding table that a batch needs. The table must be a parameter of shape
// [rows, width] that gets sparse gradients; only the rows named here travel to and from the ps.
struct RowUse {
  std::string parameter;
  torch::Tensor rows;  // int64, any shape, repetitions allowed
};

class Model {
 public:
  virtual ~Model() = default;

  // Throws c10::Error where the inputs do not fit, as torch does; the trainer explains it.
  virtual torch::Tensor Forward(const torch::Tensor& inputs) = 0;
  // What the optimizer changes, and what it does not but belongs to the model (running means). In
  // the order of definition, the same on every task.
  virtual NamedTensors Parameters() = 0;
  virtual NamedTensors Buffers() = 0;
  virtual void SetTraining(bool on) = 0;
  virtual std::vector<RowUse> RowsNeeded(const torch::Tensor& /*inputs*/) { return {}; }
};

// Makes the model. Called once the random numbers were seeded, so that a seed decides the first
// values.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>()>;

// A torch::nn::Module with `torch::Tensor forward(torch::Tensor)`.
template <typename Net>
class ModuleModel : public Model {
 public:
  explicit ModuleModel(std::shared_ptr<Net> net) : net_(std::move(net)) {}

  torch::Tensor Forward(const torch::Tensor& inputs) override { return net_->forward(inputs); }
  NamedTensors Parameters() override { return OfParameters(/*frozen=*/false); }
  // Parameters that do not require gradients belong here.
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

// The data of a split ("train", "test", …).
using DataFactory =
    std::function<absl::StatusOr<std::shared_ptr<const data::Dataset>>(const std::string& split)>;

struct DataSource {
  std::string format;  // mnist, idx, synthetic
  std::string path;
};
DataFactory OpenData(const DataSource& source);

// Tensors in memory, the example first. One pair for training, one for everything else.
DataFactory FromTensors(const Batch& train, const Batch& test);

// Throws c10::Error where outputs and targets do not fit; a target is never broadcast. What a loss
// of your own throws ends the task with that text.
using Loss = std::function<torch::Tensor(const torch::Tensor& outputs, const Batch& batch)>;
Loss CrossEntropy();
Loss BinaryCrossEntropy();  // of logits
Loss MeanSquaredError();
Loss MeanAbsoluteError();
Loss Huber();
// Outputs [batch, time, classes]; targets [batch, length], 0 is the blank and fills up.
Loss Ctc();

// Accumulates over the batches of an evaluation.
class Metric {
 public:
  virtual ~Metric() = default;
  // Throws as losses do.
  virtual void Add(const torch::Tensor& outputs, const Batch& batch) = 0;
  virtual double Value() const = 0;  // NaN when there is nothing to tell
};

struct MetricSpec {
  std::string name;
  bool higher_is_better = true;
  std::function<std::unique_ptr<Metric>()> make;
};
MetricSpec Accuracy();
MetricSpec TopK(int k);  // k of at least 1
MetricSpec Auc();
MetricSpec MeanAbsoluteErrorMetric();
MetricSpec MeanSquaredErrorMetric();

// ---------------------------------------------------------------------------------------------
// How it runs

struct RunConfig {
  std::string model_dir;  // checkpoints, summaries, exports; MUSTER_MODEL_DIR goes before it
  uint64_t seed = 0;
  int64_t save_summary_steps = 100;
  bool save_histograms = false;  // of the parameters, with the summaries
  int64_t log_step_count_steps = 100;
  // Whichever is set; every 600 s when neither is.
  std::optional<int64_t> save_checkpoints_steps;
  std::optional<int64_t> save_checkpoints_secs;
  int keep_checkpoint_max = 5;
  // How long tasks wait for each other at the start.
  absl::Duration start_timeout = absl::Minutes(5);
  // And later: for a step of theirs, a chief that evaluates, a task that is started again.
  absl::Duration peer_timeout = absl::Minutes(30);
};

struct OptimizerSpec {
  std::string type = "adam";  // sgd, adam, adamw, adagrad, rmsprop
  double learning_rate = 0.001;
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::optional<double> epsilon;
  double decay = 0.99;  // of rmsprop's mean of squares
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
  int64_t max_steps = 0;    // exact, of the whole job
  int64_t batch_size = 32;  // per task
  std::string strategy;     // sync, async, bounded, allreduce; sync with ps tasks, else allreduce
  int64_t staleness = 3;    // of bounded: how many steps a task may be ahead of the slowest
  int backup_tasks = 0;     // of sync: gradients that a step does not wait for
  int64_t accumulate = 1;   // batches per gradient
  double clip_norm = 0;     // 0: no clipping
  double weight_decay = 0;
  std::string wire_precision = "float32";  // of gradients on their way to a ps: float16, bfloat16
  std::string nan_guard = "stop";          // stop, skip, off
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  bool shuffle = true;
  int prefetch = 4;  // batches made ahead
  // A checkpoint folder or model dir whose tensors of the same name and shape are the first values.
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
  std::optional<int64_t> steps;  // batches; all when absent
  // A checkpoint is evaluated when so many steps have gone since the last one that was; each when
  // absent, and the last always.
  std::optional<int64_t> every_steps;
  std::optional<int64_t> batch_size;
  absl::Duration start_delay;
  absl::Duration throttle;  // at most one evaluation in this time
  std::vector<Exporter> exporters;
};

// What a hook sees of the run.
class RunContext {
 public:
  virtual ~RunContext() = default;
  virtual int64_t step() const = 0;  // completed steps
  virtual const std::string& task() const = 0;
  virtual bool is_chief() const = 0;
  virtual Model& model() = 0;
  // The chief's ends the whole job in good order after this step: a checkpoint is saved, every task
  // ends. That of another task is not heard.
  virtual void RequestStop(const std::string& reason) = 0;
  // On the chief, into the summaries; elsewhere nothing.
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

// Stops when the loss of the chief did not improve by `min_delta` for `patience` steps.
std::shared_ptr<Hook> EarlyStopping(int64_t patience, double min_delta = 0);
// Writes what each step spent on input, computation and exchange as a Chrome trace.
std::shared_ptr<Hook> Profiler(const std::string& path, int64_t first_step, int64_t steps);

struct Experiment {
  std::string name = "model";
  // What else decides the result, e.g. {"model", "resnet18"}: stored with the checkpoints beside
  // the numbers below, so that a later run in the same model dir reports what differs.
  std::map<std::string, std::string> settings;
  ModelFactory model;
  DataFactory data;
  Loss loss;
  std::vector<MetricSpec> metrics;
  RunConfig run;
  TrainSpec train;
  EvalSpec evaluate;
};

// Plays this process's part in the experiment and returns its exit code. Also understands
// `evaluate`, `predict` and `export` as first argument; --help lists them.
int Main(int argc, char** argv, const Experiment& experiment);

}  // namespace muster::train
