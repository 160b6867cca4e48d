// A training task's life: joins the job, computes its share of each step, and, as the chief, saves
// and ends it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "data/stream.h"
#include "muster/train.h"
#include "train/environment.h"
#include "train/evaluation.h"
#include "train/exchange.h"
#include "train/model_dir.h"
#include "train/progress_report.h"
#include "train/replica.h"
#include "train/saver.h"
#include "train/summaries.h"
#include "train/wire/transport.h"

namespace muster::train {

class Trainer final : public RunContext {
 public:
  Trainer(const Experiment& experiment, const Environment& environment, ModelDir& model_dir,
          wire::Transport& transport, std::function<void(const std::string&)> log);
  ~Trainer() override;

  // Unavailable and Aborted: its peers were lost, and another attempt may succeed.
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
  std::unique_ptr<Exchange> MakeExchange(const OptimizerConfig& optimizer);
  // The last checkpoint of this very job exists, or there was nothing to do.
  bool IsOver() const;
  absl::StatusOr<std::unique_ptr<ValueSource>> FirstValuesOf();

  absl::Status Join();
  // Trains and saves until both are done, joining again when servers are lost.
  absl::Status TrainToTheEnd();
  absl::Status Loop();
  // One step. False: the job is over.
  absl::StatusOr<bool> Step();
  absl::StatusOr<std::vector<Batch>> NextBatches();
  // Brings the data to the batches of `progress_`.
  absl::Status SeekData();
  // The mean loss; pushes gradients on the way.
  absl::StatusOr<double> Compute(const std::vector<Batch>& batches, bool& skipped);
  absl::Status CheckFinite(double loss, bool& skipped);
  void OnGradient(int parameter);
  absl::Status AfterStep(const StepResult& result);
  // Every task is at the same step.
  bool shared_steps() const;
  void AnnounceSaved();
  bool CheckpointDue() const;
  bool EvaluationDue() const;
  absl::Status Save(bool final);
  absl::Status SaveLast();
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
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<data::BatchStream> stream_;
  DataOrigin stream_origin_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Summaries> summaries_;
  std::unique_ptr<Model> evaluated_;  // where the chief evaluates
  std::unique_ptr<EvalRecorder> recorder_;
  std::unique_ptr<ProgressReport> report_;
  std::vector<std::string> slots_;

  Progress progress_;
  bool has_joined_ = false;  // once; from then on the model has other values than it was made with
  bool backward_is_last_ = true;
  std::string bad_gradient_;  // the first parameter whose gradient is not finite
  std::string stop_reason_;
  bool stop_sent_ = false;
  bool nothing_to_do_ = false;  // the last checkpoint was there
  int64_t first_step_ = 0;      // where this task joined
  int64_t saved_step_ = 0;
  int64_t summarized_step_ = 0;
  int64_t announced_step_ = 0;
  int64_t evaluated_step_ = 0;
  absl::Time evaluated_at_ = absl::InfinitePast();
  absl::Time saved_at_;
};

}  // namespace muster::train
