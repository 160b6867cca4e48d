// How good a model is: metrics over a split, kept beside the checkpoints; and what is exported.
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
#include "train/environment.h"
#include "train/model_dir.h"

namespace muster::train {

struct EvalResult {
  int64_t step = 0;
  int64_t examples = 0;
  std::string job;                                      // that saved the checkpoint; "": not known
  std::vector<std::pair<std::string, double>> metrics;  // the most important first
};

// One pass over `split`, at most `steps` batches. The model is in training mode afterwards.
absl::StatusOr<EvalResult> EvaluateModel(const Experiment& experiment, Model& model,
                                         const std::string& split);

// "MNIST accuracy: 0.9912, loss 0.0301 (step 2000, 10000 examples of test)"
std::string ToString(const EvalResult& result, const std::string& name, const std::string& split);

// Writes the model's outputs for a split as CSV: of classes the likeliest and its probability, for
// each position of an example where the outputs have several (row-major); else the numbers.
absl::Status PredictToFile(const Experiment& experiment, Model& model, const std::string& split,
                           const std::string& path);

// Gives the model the values of a checkpoint. FailedPrecondition when it is of another model.
absl::Status LoadCheckpoint(const checkpoint::Checkpoint& stored, Model& model);

// Writes the model: its tensors as PATH.safetensors, or as TorchScript. What was written, for the
// user.
absl::StatusOr<std::string> ExportModel(const Experiment& experiment, Model& model,
                                        const std::string& path);

// The results of a model dir: <model_dir>/eval, the best checkpoint, exports.
class EvalRecorder {
 public:
  EvalRecorder(const Experiment& experiment, ModelDir& model_dir,
               std::function<void(const std::string&)> log);

  // Gives `model` the values of a checkpoint and evaluates it; logs and stores the result, and
  // exports the model as the experiment asks. `final`: it is the job's last. A result that cannot
  // be stored is logged only: training goes on.
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

// An evaluator's life: evaluates each new checkpoint of the model dir until the last of this job
// (of any, for an evaluator without a job's id). Fails as CheckEarlierRun does.
absl::Status EvaluateUntilFinal(const Experiment& experiment, const Environment& environment,
                                ModelDir& model_dir,
                                const std::function<void(const std::string&)>& log);

}  // namespace muster::train
