// The files that the chief writes during training: checkpoints, summaries and evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/train.h"
#include "train/core/optimizer.h"
#include "train/run/cadence.h"
#include "train/run/environment.h"
#include "train/run/model_dir.h"
#include "train/run/saver.h"
#include "train/torch/chief_evaluation.h"
#include "train/torch/end_of_job.h"
#include "train/torch/exchange/exchange.h"
#include "train/torch/exchange/replica.h"
#include "train/torch/summaries.h"
#include "train/torch/train_input.h"

namespace muster::train {

// Returns the names of the optimizer's slots.
std::vector<std::string> SlotsOf(const OptimizerConfig& optimizer);

// Writes nothing if the job has no model dir. Not thread-safe.
class ChiefOutputs {
 public:
  using Log = std::function<void(const std::string&)>;
  // What is trained. Outlives the outputs.
  struct Parts {
    Model& model;
    Replica& replica;
    Exchange& exchange;
    const OptimizerConfig& optimizer;
    const TrainInput& input;
  };

  // `context` is passed to hooks. The references must outlive this object.
  ChiefOutputs(const Experiment& experiment, const Environment& environment, ModelDir& model_dir,
               RunContext& context, Log log);

  // Opens the files at the first call. The chief has joined, or joined again, at `step`.
  void OnJoined(const Parts& parts, int64_t step);

  void AddScalar(const std::string& tag, int64_t step, double value);
  // Writes the summary of a step if one is due.
  void Summarize(int64_t step, double loss, double examples_per_second, const Replica& replica);
  // Begins a checkpoint, and evaluates it, if they are due.
  absl::Status SaveIfDue(const Progress& progress, Exchange& exchange);
  // Saves the last checkpoint.
  absl::Status SaveFinal(int64_t step, Exchange& exchange, EndOfJob& end);
  // Evaluates the last checkpoint.
  absl::Status EvaluateFinal();
  void FlushSummaries();
  // Returns null if the job has no model dir.
  const Saver* saver() const { return saver_.get(); }

 private:
  void OpenSummaries(const Parts& parts, int64_t step);
  // Calls the hooks after a new checkpoint was written.
  void AnnounceSaved();
  absl::Status Save(int64_t step, Exchange& exchange, bool final);
  // Evaluates the newest checkpoint.
  absl::Status Evaluate(bool final);

  const Experiment& experiment_;
  const Environment& environment_;
  ModelDir& model_dir_;
  RunContext& context_;
  const Log log_;
  Cadence cadence_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Summaries> summaries_;
  std::unique_ptr<ChiefEvaluation> evaluation_;  // null: the chief does not evaluate
  int64_t first_step_ = 0;                       // at which the chief joined last
  int64_t announced_step_ = 0;
};

}  // namespace muster::train
