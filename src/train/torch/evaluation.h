// Evaluation: metrics over a split, stored beside the checkpoints; predictions; exports.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/reader.h"
#include "muster/train.h"
#include "summary/event_writer.h"
#include "train/run/environment.h"
#include "train/run/model_dir.h"

namespace muster::train {

struct EvalResult {
  int64_t step = 0;
  int64_t examples = 0;
  std::string job;                                      // that saved the checkpoint; "": unknown
  std::vector<std::pair<std::string, double>> metrics;  // the most important first
};

// Evaluates the model on `split`, at most `evaluate.steps` batches. Leaves it in training mode.
absl::StatusOr<EvalResult> EvaluateModel(const Experiment& experiment, Model& model,
                                         const std::string& split);

// Returns "MNIST accuracy: 0.9912, loss 0.0301 (step 2000, 10000 examples of test)"
std::string ToString(const EvalResult& result, const std::string& name, const std::string& split);

// Writes the model's outputs for a split as CSV: for classes the most likely one and its
// probability, for each position (row-major) if an example has several; else the raw outputs.
absl::Status PredictToFile(const Experiment& experiment, Model& model, const std::string& split,
                           const std::string& path);

// Loads the values of a checkpoint. Returns FailedPrecondition if it is of another model.
absl::Status LoadCheckpoint(const checkpoint::Checkpoint& stored, Model& model);

// Writes the model: its tensors if `path` ends in .safetensors, else TorchScript. Returns a
// description of the file for the user.
absl::StatusOr<std::string> ExportModel(const Experiment& experiment, Model& model,
                                        const std::string& path);

// Records the results in a model dir: <model_dir>/eval, the best checkpoint, exports.
class EvalRecorder {
 public:
  EvalRecorder(const Experiment& experiment, ModelDir& model_dir,
               std::function<void(const std::string&)> log);

  // Loads a checkpoint into `model` and evaluates it; logs and stores the result, and exports the
  // model as configured. `final`: the job's last checkpoint. Only logs a result that cannot be
  // stored, so that training continues.
  absl::Status Evaluate(const checkpoint::Checkpoint& stored, Model& model, bool final);

 private:
  void Record(const EvalResult& result, Model& model, bool final);
  absl::Status WriteResult(const EvalResult& result);
  absl::StatusOr<bool> UpdateBest(const EvalResult& result);
  absl::Status Keep(const EvalResult& result, Model& model, bool final);
  absl::Status Export(const Exporter& exporter, Model& model);

  const Experiment& experiment_;
  ModelDir& model_dir_;
  std::function<void(const std::string&)> log_;
  std::unique_ptr<summary::EventWriter> events_;
};

// Runs an evaluator: evaluates each new checkpoint of the model dir until the last one of this job
// (of any job, without a job id). Returns errors as CheckEarlierRun().
absl::Status EvaluateUntilFinal(const Experiment& experiment, const Environment& environment,
                                ModelDir& model_dir,
                                const std::function<void(const std::string&)>& log);

}  // namespace muster::train
