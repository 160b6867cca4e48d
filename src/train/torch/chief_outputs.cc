#include "train/torch/chief_outputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/trace.h"
#include "train/torch/specs.h"

namespace muster::train {
namespace {

Cadence::Options CadenceOf(const RunConfig& run, const EvalSpec& evaluate) {
  return {.summary_steps = run.save_summary_steps,
          .checkpoint_steps = run.save_checkpoints_steps,
          .checkpoint_interval = absl::Seconds(run.save_checkpoints_secs.value_or(600)),
          .evaluation_steps = evaluate.every_steps.value_or(0),
          .evaluation_interval = evaluate.throttle};
}

}  // namespace

std::vector<std::string> SlotsOf(const OptimizerConfig& optimizer) {
  std::vector<std::string> slots;
  for (const absl::string_view slot : SlotNames(optimizer)) slots.emplace_back(slot);
  return slots;
}

ChiefOutputs::ChiefOutputs(const Experiment& experiment, const Environment& environment,
                           ModelDir& model_dir, RunContext& context, Log log)
    : experiment_(experiment),
      environment_(environment),
      model_dir_(model_dir),
      context_(context),
      log_(std::move(log)),
      cadence_(CadenceOf(experiment.run, experiment.evaluate)) {}

void ChiefOutputs::OnJoined(const Parts& parts, int64_t step) {
  first_step_ = step;
  cadence_.Restart(step, base::Clock::Real().Now());
  if (saver_ != nullptr || environment_.model_dir.empty()) return;
  saver_ = std::make_unique<Saver>(
      Saver::Options{.model_dir = &model_dir_,
                     .model_name = experiment_.name,
                     .keep = experiment_.run.keep_checkpoint_max,
                     .variables = parts.replica.variables(),
                     .plans = parts.exchange.plans(),
                     .slots = SlotsOf(parts.optimizer),
                     .state = {{"seed", experiment_.run.seed},
                               {"world", parts.input.world()},
                               {"examples_per_step", parts.input.examples_per_step()},
                               {"strategy", experiment_.train.strategy},
                               {"job", environment_.job_id},
                               {"settings", SettingsOf(experiment_)},
                               {"data", parts.input.origin().ToJson()}},
                     .log = log_});
  if (environment_.ChiefEvaluates() && experiment_.evaluate.enabled) {
    evaluation_ = std::make_unique<ChiefEvaluation>(experiment_, model_dir_, log_);
  }
  OpenSummaries(parts, step);
}

void ChiefOutputs::OpenSummaries(const Parts& parts, int64_t step) {
  auto operations = TraceModel(parts.model, InputOf(parts.input.dataset()), experiment_.loss,
                               experiment_.train.batch_size);
  if (!operations.ok()) {
    log_(absl::StrCat("the graph has no operations: ", operations.status().message()));
    operations = UntracedModel(parts.replica.variables());
  }
  auto summaries = Summaries::Open({.environment = environment_,
                                    .variables = parts.replica.variables(),
                                    .plans = parts.exchange.plans(),
                                    .optimizer = parts.optimizer,
                                    .operations = *operations},
                                   step, log_);
  if (summaries.ok()) {
    summaries_ = *std::move(summaries);
  } else {
    log_(absl::StrCat("cannot write summaries: ", summaries.status().message()));
  }
}

void ChiefOutputs::AddScalar(const std::string& tag, int64_t step, double value) {
  if (summaries_ != nullptr) summaries_->Scalar(tag, step, value);
}

void ChiefOutputs::Summarize(int64_t step, double loss, double examples_per_second,
                             const Replica& replica) {
  if (summaries_ == nullptr || !cadence_.SummaryDue(step)) return;
  cadence_.Summarized(step);
  AddScalar("loss", step, loss);
  AddScalar("examples_per_second", step, examples_per_second);
  if (experiment_.run.save_histograms) summaries_->Histograms(replica, step);
  summaries_->Flush();
}

void ChiefOutputs::FlushSummaries() {
  if (summaries_ != nullptr) summaries_->Flush();
}

absl::Status ChiefOutputs::SaveIfDue(const Progress& progress, Exchange& exchange) {
  if (saver_ == nullptr) return absl::OkStatus();
  AnnounceSaved();
  const bool due = cadence_.CheckpointDue(progress.step, base::Clock::Real().Now());
  if (progress.step >= progress.limit || !due) return absl::OkStatus();
  return Save(progress.step, exchange, /*final=*/false);
}

absl::Status ChiefOutputs::SaveFinal(int64_t step, Exchange& exchange, EndOfJob& end) {
  if (saver_ == nullptr) return absl::OkStatus();
  return end.SaveFinal(step, first_step_, *saver_, [&] {
    absl::Status status = Save(step, exchange, /*final=*/true);
    if (status.ok()) status = saver_->Wait();
    AnnounceSaved();
    return status;
  });
}

void ChiefOutputs::AnnounceSaved() {
  if (saver_->saved_step() <= announced_step_) return;
  announced_step_ = saver_->saved_step();
  for (const auto& hook : experiment_.train.hooks) hook->AfterSave(context_, saver_->folder());
}

absl::Status ChiefOutputs::Save(int64_t step, Exchange& exchange, bool final) {
  if (saver_->busy() && !final) return absl::OkStatus();  // still due after the next step
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Snapshot> snapshot, exchange.TakeSnapshot());
  cadence_.Saved(step, base::Clock::Real().Now());
  saver_->Save(std::move(snapshot), final);
  if (final || evaluation_ == nullptr) return absl::OkStatus();
  if (!cadence_.EvaluationDue(step, base::Clock::Real().Now())) return absl::OkStatus();
  if (!saver_->AwaitWritten().ok()) return absl::OkStatus();  // logged by the saver
  return Evaluate(/*final=*/false);
}

absl::Status ChiefOutputs::Evaluate(bool final) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t step, evaluation_->EvaluateNewest(final));
  cadence_.Evaluated(step, base::Clock::Real().Now());
  return absl::OkStatus();
}

absl::Status ChiefOutputs::EvaluateFinal() {
  return evaluation_ == nullptr ? absl::OkStatus() : Evaluate(/*final=*/true);
}

}  // namespace muster::train
