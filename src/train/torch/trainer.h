// A training task: joins the job, computes its part of each step, and, as the chief, saves
// checkpoints and ends the job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "data/input/stream.h"
#include "muster/train.h"
#include "train/run/cadence.h"
#include "train/run/environment.h"
#include "train/run/model_dir.h"
#include "train/run/progress_report.h"
#include "train/run/saver.h"
#include "train/torch/chief_evaluation.h"
#include "train/torch/end_of_job.h"
#include "train/torch/exchange/exchange.h"
#include "train/torch/exchange/replica.h"
#include "train/torch/summaries.h"
#include "train/wire/transport.h"

namespace muster::train {

// Not thread-safe.
class Trainer final : public RunContext {
 public:
  // The references must outlive this object.
  Trainer(const Experiment& experiment, const Environment& environment, ModelDir& model_dir,
          wire::Transport& transport, std::function<void(const std::string&)> log);
  ~Trainer() override;

  // Trains to the end of the job. Returns Unavailable or Aborted if peers were lost and another
  // attempt may succeed.
  absl::Status Run();

  // RunContext
  int64_t step() const override { return progress_.step; }
  const std::string& task() const override { return name_; }
  bool is_chief() const override { return environment_.is_chief; }
  Model& model() override { return *model_; }
  void RequestStop(const std::string& reason) override { stop_reason_ = reason; }
  void AddScalar(const std::string& tag, double value) override;

 private:
  absl::Status Prepare();
  absl::Status Train();
  absl::StatusOr<std::set<std::string>> FindTables();
  std::unique_ptr<Exchange> MakeExchange();
  absl::StatusOr<std::unique_ptr<ValueSource>> FirstValuesOf();

  absl::Status Join();
  // Opens the saver, the evaluation and the summaries of the chief, once.
  void OpenOutputs();
  void OpenSummaries();
  // Trains and saves to the end, rejoining when servers are lost.
  absl::Status TrainUntilDone();
  absl::Status Loop();
  // Computes one step. Returns false if the job is complete.
  absl::StatusOr<bool> Step();
  absl::StatusOr<std::vector<Batch>> NextBatches();
  // Moves the data to the batches of `progress_`.
  absl::Status SeekData();
  // Returns the mean loss. Gradients are sent meanwhile.
  absl::StatusOr<double> Compute(const std::vector<Batch>& batches, bool& skipped);
  absl::Status CheckFinite(double loss, bool& skipped);
  void OnGradient(int parameter);
  absl::Status AfterStep(const StepResult& result);
  // Returns whether all tasks compute the same step.
  bool shared_steps() const;
  // Calls the hooks after a new checkpoint was written.
  void AnnounceSaved();
  absl::Status Save(bool final);
  absl::Status SaveFinal();
  // Evaluates the newest checkpoint.
  absl::Status Evaluate(bool final);
  absl::Status End();
  std::string At() const;  // "worker:1, step 812"

  const Experiment& experiment_;
  const Environment& environment_;
  ModelDir& model_dir_;
  wire::Transport& transport_;
  const std::function<void(const std::string&)> log_;
  const std::string name_;
  const int rank_;
  const int world_;

  std::shared_ptr<const data::Dataset> dataset_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Replica> replica_;
  OptimizerConfig optimizer_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<data::BatchStream> stream_;
  DataOrigin stream_origin_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Summaries> summaries_;
  std::unique_ptr<ChiefEvaluation> evaluation_;  // null: the chief does not evaluate
  std::unique_ptr<ProgressReport> report_;
  Cadence cadence_;
  EndOfJob end_;
  std::vector<std::string> slots_;

  Progress progress_;
  bool has_joined_ = false;  // ever; from then on the model no longer has its initial values
  bool backward_is_last_ = true;
  std::string bad_gradient_;  // the first parameter whose gradient is not finite
  std::string stop_reason_;
  bool stop_sent_ = false;
  int64_t first_step_ = 0;  // at which this task joined last
  int64_t announced_step_ = 0;
};

}  // namespace muster::train
