// A training task: joins the job, computes its part of each step, and, as the chief, saves
// checkpoints and ends the job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/train.h"
#include "train/run/environment.h"
#include "train/run/model_dir.h"
#include "train/run/progress_report.h"
#include "train/torch/chief_outputs.h"
#include "train/torch/end_of_job.h"
#include "train/torch/exchange/exchange.h"
#include "train/torch/exchange/replica.h"
#include "train/torch/finite_guard.h"
#include "train/torch/train_input.h"
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
  void RequestStop(const std::string& reason) override { stop_.reason = reason; }
  void AddScalar(const std::string& tag, double value) override;

 private:
  absl::Status Prepare();
  absl::Status Train();
  absl::StatusOr<std::set<std::string>> FindTables();
  std::unique_ptr<Exchange> MakeExchange();
  absl::StatusOr<std::unique_ptr<ValueSource>> FirstValuesOf();

  absl::Status Join();
  // Trains and saves to the end, rejoining when servers are lost.
  absl::Status TrainUntilDone();
  absl::Status Loop();
  // Computes one step. Returns false if the job is complete.
  absl::StatusOr<bool> Step();
  // Returns the mean loss. Gradients are sent meanwhile.
  absl::StatusOr<double> Compute(const std::vector<Batch>& batches, bool& skipped);
  void OnGradient(int parameter);
  absl::Status AfterStep(const StepResult& result);
  // Returns whether all tasks compute the same step.
  bool shared_steps() const;
  // Saves the last checkpoint or, in a task other than the chief, waits for it.
  absl::Status SaveFinal();
  absl::Status End();
  std::string At() const;  // "worker:1, step 812"

  const Experiment& experiment_;
  const Environment& environment_;
  ModelDir& model_dir_;
  wire::Transport& transport_;
  const std::function<void(const std::string&)> log_;
  const std::string name_;

  std::unique_ptr<TrainInput> input_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Replica> replica_;
  OptimizerConfig optimizer_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<ChiefOutputs> outputs_;  // null: this task is not the chief
  std::unique_ptr<ProgressReport> report_;
  FiniteGuard guard_;
  EndOfJob end_;

  Progress progress_;
  bool has_joined_ = false;  // ever; from then on the model no longer has its initial values
  bool backward_is_last_ = true;
  struct {
    std::string reason;  // of the request to stop; "" = none
    bool sent = false;
  } stop_;
};

}  // namespace muster::train
