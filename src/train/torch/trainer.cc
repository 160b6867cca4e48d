// The life of a training task:
//
//    Prepare ──> Join ──> Step … Step ──limit──> SaveFinal (chief), AwaitEnd (others) ──> End
//                  ^          │                          │
//                  └──────────┴──peers lost, with ps─────┘
//
// After a rejoin the job may be at an earlier step, that of the last checkpoint: data, cadence and
// report start there again.
#include "train/torch/trainer.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "data/input/random.h"
#include "train/core/finite.h"
#include "train/run/first_values.h"
#include "train/run/peer.h"
#include "train/torch/earlier_run.h"
#include "train/torch/exchange/collective_exchange.h"
#include "train/torch/exchange/ps_exchange.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/models.h"
#include "train/torch/model/trace.h"
#include "train/torch/specs.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

Cadence::Options CadenceOf(const RunConfig& run, const EvalSpec& evaluate) {
  return {.summary_steps = run.save_summary_steps,
          .checkpoint_steps = run.save_checkpoints_steps,
          .checkpoint_interval = absl::Seconds(run.save_checkpoints_secs.value_or(600)),
          .evaluation_steps = evaluate.every_steps.value_or(0),
          .evaluation_interval = evaluate.throttle};
}

// The random numbers of a step depend only on these, so that another process that recomputes the
// step gets the same result. The ranks of one sequence take 4096 consecutive numbers, which the
// golden-ratio multiplier spreads.
uint64_t SeedOf(uint64_t seed, int rank, int64_t sequence) {
  return data::Mix(seed + 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(sequence) * 4096 +
                                                static_cast<uint64_t>(rank) + 1));
}

}  // namespace

Trainer::Trainer(const Experiment& experiment, const Environment& environment, ModelDir& model_dir,
                 wire::Transport& transport, std::function<void(const std::string&)> log)
    : experiment_(experiment),
      environment_(environment),
      model_dir_(model_dir),
      transport_(transport),
      log_(std::move(log)),
      name_(environment.self.ToString()),
      rank_(environment.Rank()),
      world_(static_cast<int>(environment.TrainingTasks().size())),
      cadence_(CadenceOf(experiment.run, experiment.evaluate)),
      end_(environment, model_dir, experiment.train.max_steps, log_) {}

Trainer::~Trainer() = default;

bool Trainer::shared_steps() const {
  return environment_.Servers() == 0 || StrategyOf(experiment_.train) == Strategy::kSync;
}

std::string Trainer::At() const { return absl::StrCat(name_, ", step ", progress_.step); }

void Trainer::AddScalar(const std::string& tag, double value) {
  if (summaries_ != nullptr) summaries_->Scalar(tag, progress_.step, value);
}

absl::Status Trainer::Run() {
  MUSTER_RETURN_IF_ERROR(Prepare());
  const absl::Status status = Train();
  // After joining, a timeout means lost peers: retryable.
  if (has_joined_ && absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(status.message());
  }
  return status;
}

absl::Status Trainer::Train() {
  absl::Status status = Join();
  if (status.ok()) {
    for (const auto& hook : experiment_.train.hooks) hook->Begin(*this);
    status = TrainUntilDone();
  }
  if (absl::IsCancelled(status)) {
    log_("the other tasks have ended the job");
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(status);
  for (const auto& hook : experiment_.train.hooks) hook->End(*this);
  if (environment_.is_chief) return End();
  return absl::OkStatus();
}

absl::Status Trainer::Prepare() {
  MUSTER_ASSIGN_OR_RETURN(dataset_, experiment_.data("train"));
  torch::manual_seed(experiment_.run.seed);
  MUSTER_ASSIGN_OR_RETURN(model_, experiment_.model());
  model_->SetTraining(true);
  MUSTER_RETURN_IF_ERROR(CheckModel(*model_, InputOf(*dataset_), experiment_.loss));
  MUSTER_ASSIGN_OR_RETURN(const std::set<std::string> tables, FindTables());
  MUSTER_ASSIGN_OR_RETURN(replica_, Replica::Create(*model_, tables));
  MUSTER_ASSIGN_OR_RETURN(optimizer_, OptimizerOf(experiment_.train));
  for (const absl::string_view slot : SlotNames(optimizer_)) slots_.emplace_back(slot);
  exchange_ = MakeExchange();
  replica_->OnGradient([this](int parameter) { OnGradient(parameter); });
  // Fail now, not after the servers were initialized.
  MUSTER_ASSIGN_OR_RETURN(
      stream_, data::TrainStream(dataset_, {.batch_size = experiment_.train.batch_size}));
  if (!environment_.is_chief) return absl::OkStatus();
  if (experiment_.evaluate.enabled) {  // fail now, not after training
    MUSTER_RETURN_IF_ERROR(experiment_.data(experiment_.evaluate.split).status());
  }
  MUSTER_RETURN_IF_ERROR(model_dir_.ClaimForTraining());
  if (environment_.resume_step.has_value()) {
    MUSTER_RETURN_IF_ERROR(model_dir_.ResumeFrom(*environment_.resume_step));
  }
  return CheckEarlierRun(model_dir_, experiment_, log_);
}

absl::StatusOr<std::set<std::string>> Trainer::FindTables() {
  if (environment_.Servers() == 0) return std::set<std::string>();  // nothing is sent by rows
  data::Batch example;
  MUSTER_RETURN_IF_ERROR(dataset_->Read({0}, example));
  std::set<std::string> tables;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    const Batch batch = ToTensors(std::move(example));
    for (const RowUse& use : model_->RowsNeeded(batch.inputs)) tables.insert(use.parameter);
  }));
  return tables;
}

std::unique_ptr<Exchange> Trainer::MakeExchange() {
  const TrainSpec& train = experiment_.train;
  if (environment_.Servers() == 0) {
    CollectiveExchange::Options options{
        .optimizer = optimizer_,
        .schedule = ScheduleOf(train),
        .total_steps = train.max_steps,
        .clip_norm = train.clip_norm,
        .saves = environment_.is_chief && !environment_.model_dir.empty()};
    options.rendezvous = {.rank = std::max(0, rank_),
                          .tasks = environment_.TrainingTasks(),
                          .folder = environment_.socket_dir,
                          .transport = &transport_,
                          .hello = HelloOf(environment_),
                          .cluster = ClusterText(environment_),
                          .timeout = experiment_.run.start_timeout,
                          .peer_timeout = experiment_.run.peer_timeout,
                          .log = log_};
    for (const cluster::TaskId& task : options.rendezvous.tasks) {
      options.rendezvous.addresses.emplace_back(environment_.cluster.AddressOf(task));
    }
    return std::make_unique<CollectiveExchange>(*replica_, std::move(options));
  }
  PsExchange::Options options{.hello = HelloOf(environment_),
                              .is_chief = environment_.is_chief,
                              .precision = PrecisionOf(train),
                              .clip_norm = train.clip_norm,
                              .start_timeout = experiment_.run.start_timeout,
                              .peer_timeout = experiment_.run.peer_timeout,
                              .log = log_,
                              .is_over = [this] { return end_.HasEnded(); }};
  for (int i = 0; i < environment_.Servers(); ++i) {
    options.addresses.push_back(environment_.AddressOf({"ps", i}));
  }
  options.spec.strategy = StrategyOf(train);
  options.spec.limit = train.max_steps;
  options.spec.total_steps = train.max_steps;
  options.spec.backup_tasks = train.backup_tasks;
  options.spec.staleness = train.staleness;
  options.spec.cursors.assign(static_cast<size_t>(world_), 0);
  options.spec.optimizer = optimizer_;
  options.spec.schedule = ScheduleOf(train);
  return std::make_unique<PsExchange>(transport_, *replica_, std::move(options));
}

absl::StatusOr<std::unique_ptr<ValueSource>> Trainer::FirstValuesOf() {
  MUSTER_RETURN_IF_ERROR(model_dir_.Fetch(std::nullopt));
  // Once the model has been trained, a second one is created to get the initial values.
  struct Fresh {
    std::unique_ptr<Model> model;
    std::unique_ptr<Replica> replica;
  };
  auto fresh = std::make_shared<Fresh>();
  if (has_joined_) {
    torch::manual_seed(experiment_.run.seed);
    MUSTER_ASSIGN_OR_RETURN(fresh->model, experiment_.model());
    MUSTER_ASSIGN_OR_RETURN(fresh->replica, Replica::Create(*fresh->model, {}));
  }
  Replica* replica = has_joined_ ? fresh->replica.get() : replica_.get();
  const TrainSpec& train = experiment_.train;
  return ReadFirstValues(
      {.model_dir = environment_.model_dir,
       .warm_start = train.warm_start,
       .variables = replica_->variables(),
       .slots = slots_,
       .world = world_,
       .examples_per_step = train.batch_size * train.accumulate,
       .shared_steps = shared_steps(),
       .log = log_,
       .initial = [replica, fresh](int variable) { return replica->Bytes(variable); }});
}

absl::Status Trainer::Join() {
  MUSTER_ASSIGN_OR_RETURN(progress_, exchange_->Join([this] { return FirstValuesOf(); }));
  has_joined_ = true;
  const TrainSpec& train = experiment_.train;
  stream_origin_ = progress_.data;
  MUSTER_ASSIGN_OR_RETURN(stream_, data::TrainStream(dataset_, {.batch_size = train.batch_size,
                                                                .rank = std::max(0, rank_),
                                                                .world = world_,
                                                                .seed = experiment_.run.seed,
                                                                .shuffle = train.shuffle,
                                                                .base = stream_origin_.base,
                                                                .prefetch = train.prefetch}));
  MUSTER_RETURN_IF_ERROR(SeekData());
  stop_sent_ = false;
  first_step_ = progress_.step;
  cadence_.Restart(progress_.step, base::Clock::Real().Now());
  report_ = std::make_unique<ProgressReport>(
      ProgressReport::Options{.file = environment_.progress_file,
                              .log_every_steps = experiment_.run.log_step_count_steps,
                              .log_steps = environment_.is_chief,
                              .log = log_},
      progress_.step, base::Clock::Real().Now());
  if (!environment_.is_chief) {
    log_(absl::StrCat("joined at step ", progress_.step));
    return absl::OkStatus();
  }
  if (saver_ == nullptr && !environment_.model_dir.empty()) OpenOutputs();
  return absl::OkStatus();
}

void Trainer::OpenOutputs() {
  const TrainSpec& train = experiment_.train;
  saver_ = std::make_unique<Saver>(
      Saver::Options{.model_dir = &model_dir_,
                     .model_name = experiment_.name,
                     .keep = experiment_.run.keep_checkpoint_max,
                     .variables = replica_->variables(),
                     .plans = exchange_->plans(),
                     .slots = slots_,
                     .state = {{"seed", experiment_.run.seed},
                               {"world", world_},
                               {"examples_per_step", train.batch_size * train.accumulate},
                               {"strategy", train.strategy},
                               {"job", environment_.job_id},
                               {"settings", SettingsOf(experiment_)},
                               {"data", stream_origin_.ToJson()}},
                     .log = log_});
  if (environment_.ChiefEvaluates() && experiment_.evaluate.enabled) {
    evaluation_ = std::make_unique<ChiefEvaluation>(experiment_, model_dir_, log_);
  }
  OpenSummaries();
}

void Trainer::OpenSummaries() {
  auto operations =
      TraceModel(*model_, InputOf(*dataset_), experiment_.loss, experiment_.train.batch_size);
  if (!operations.ok()) {
    log_(absl::StrCat("the graph has no operations: ", operations.status().message()));
    operations = UntracedModel(replica_->variables());
  }
  auto summaries = Summaries::Open({.environment = environment_,
                                    .variables = replica_->variables(),
                                    .plans = exchange_->plans(),
                                    .optimizer = optimizer_,
                                    .operations = *operations},
                                   progress_.step, log_);
  if (summaries.ok()) {
    summaries_ = *std::move(summaries);
  } else {
    log_(absl::StrCat("cannot write summaries: ", summaries.status().message()));
  }
}

absl::Status Trainer::TrainUntilDone() {
  for (;;) {
    absl::Status status = Loop();
    // Saving the last checkpoint can lose a server, too; then the lost steps are computed again,
    // for which the other tasks are still there.
    if (status.ok()) status = environment_.is_chief ? SaveFinal() : exchange_->AwaitEnd();
    if (status.ok() || !LostPeers(status) || environment_.Servers() == 0) return status;
    log_(absl::StrCat(At(), ": ", status.message(), "; rejoining"));
    replica_->ClearGradients();
    MUSTER_RETURN_IF_ERROR(Join());
  }
}

absl::Status Trainer::Loop() {
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, Step());
    if (!more) return absl::OkStatus();
  }
}

absl::Status Trainer::SeekData() {
  return stream_->Seek((progress_.sequence - stream_origin_.first) * experiment_.train.accumulate);
}

absl::StatusOr<std::vector<Batch>> Trainer::NextBatches() {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < experiment_.train.accumulate; ++i) {
    MUSTER_ASSIGN_OR_RETURN(data::Batch batch, stream_->Next());
    batches.push_back(ToTensors(std::move(batch)));
  }
  return batches;
}

absl::StatusOr<bool> Trainer::Step() {
  const absl::Time start = base::Clock::Real().Now();
  // Before Begin(), which pulls the rows of tables that the batches use.
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Batch> batches, NextBatches());
  const absl::Time have_input = base::Clock::Real().Now();
  MUSTER_ASSIGN_OR_RETURN(const bool more, exchange_->Begin(batches));
  if (!more) return false;
  for (const auto& hook : experiment_.train.hooks) hook->BeforeStep(*this);
  torch::manual_seed(SeedOf(experiment_.run.seed, rank_, progress_.sequence));
  bool skipped = false;
  const bool may_skip = experiment_.train.nan_guard == "skip";
  const auto buffers = may_skip ? replica_->PackBuffers() : nullptr;
  MUSTER_ASSIGN_OR_RETURN(const double loss, Compute(batches, skipped));
  if (skipped) replica_->UnpackBuffers(*buffers);  // undo the update of running means
  const absl::Time computed = base::Clock::Real().Now();
  const int64_t next = progress_.sequence + 1;
  MUSTER_ASSIGN_OR_RETURN(progress_, exchange_->Finish(skipped));
  replica_->ClearGradients();
  // With backup tasks this task may skip batches, to continue at the step of the others.
  if (progress_.sequence > next) MUSTER_RETURN_IF_ERROR(SeekData());
  MUSTER_RETURN_IF_ERROR(
      AfterStep({.step = progress_.step,
                 .loss = loss,
                 .examples = experiment_.train.batch_size * experiment_.train.accumulate,
                 .input_time = have_input - start,
                 .compute_time = computed - have_input,
                 .exchange_time = base::Clock::Real().Now() - computed}));
  return true;
}

absl::StatusOr<double> Trainer::Compute(const std::vector<Batch>& batches, bool& skipped) {
  double total = 0;
  bad_gradient_.clear();
  for (size_t i = 0; i < batches.size() && !skipped; ++i) {
    backward_is_last_ = i + 1 == batches.size();
    absl::Status checked;
    const absl::Status computed = CatchTorch([&] {
      const torch::Tensor outputs = model_->Forward(batches[i].inputs);
      const torch::Tensor loss = experiment_.loss(outputs, batches[i]);
      const double value = loss.item<double>();
      total += value;
      checked = CheckFinite(value, skipped);
      if (!checked.ok() || skipped) return;
      (batches.size() == 1 ? loss : loss / static_cast<double>(batches.size())).backward();
    });
    if (!computed.ok()) return base::Annotate(computed, At());
    MUSTER_RETURN_IF_ERROR(checked);
  }
  if (!bad_gradient_.empty() && experiment_.train.nan_guard == "stop") {
    return absl::FailedPreconditionError(absl::StrCat(
        At(), ": the gradient of ", bad_gradient_,
        " is not finite; lower learning_rate, set clip_norm, or skip such gradients with "
        "nan_guard: skip"));
  }
  return total / static_cast<double>(batches.size());
}

absl::Status Trainer::CheckFinite(double loss, bool& skipped) {
  if (std::isfinite(loss) || experiment_.train.nan_guard == "off") return absl::OkStatus();
  if (experiment_.train.nan_guard == "skip") {
    log_(absl::StrCat(At(), ": the loss is ", loss, "; skipping its gradient"));
    skipped = true;
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(At(), ": the loss is ", loss,
                   "; lower learning_rate, set clip_norm, or skip such batches with "
                   "nan_guard: skip"));
}

void Trainer::OnGradient(int parameter) {
  // With `accumulate` a gradient is complete only in the last backward pass of a step.
  if (!backward_is_last_) return;
  if (experiment_.train.nan_guard != "off") {
    const torch::Tensor gradient = replica_->Gradient(parameter);
    const torch::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
    if (values.is_contiguous() && !AllFinite(values.data_ptr<float>(), values.numel())) {
      const std::string& name = replica_->variables()[parameter].spec.name;
      if (bad_gradient_.empty()) bad_gradient_ = name;
      if (experiment_.train.nan_guard == "stop") return;  // Compute() fails; send nothing more
      log_(absl::StrCat(At(), ": the gradient of ", name, " is not finite; skipping it"));
      replica_->ZeroGradient(parameter);
    }
  }
  exchange_->OnGradient(parameter);
}

absl::Status Trainer::AfterStep(const StepResult& result) {
  const int64_t examples = result.examples * (shared_steps() ? world_ : 1);
  report_->Step(progress_.step, progress_.limit, result.loss, examples, base::Clock::Real().Now());
  for (const auto& hook : experiment_.train.hooks) hook->AfterStep(*this, result);
  if (!environment_.is_chief) return absl::OkStatus();
  const RunConfig& run = experiment_.run;
  if (summaries_ != nullptr && cadence_.SummaryDue(progress_.step)) {
    cadence_.Summarized(progress_.step);
    AddScalar("loss", result.loss);
    AddScalar("examples_per_second", report_->rate());
    if (run.save_histograms) summaries_->Histograms(*replica_, progress_.step);
    summaries_->Flush();
  }
  if (!stop_reason_.empty() && !stop_sent_) {
    stop_sent_ = true;
    log_(absl::StrCat("stopping after step ", progress_.step, ": ", stop_reason_));
    MUSTER_RETURN_IF_ERROR(exchange_->EndAt(progress_.step));
  }
  if (saver_ == nullptr) return absl::OkStatus();
  AnnounceSaved();
  const bool due = cadence_.CheckpointDue(progress_.step, base::Clock::Real().Now());
  if (progress_.step < progress_.limit && due) return Save(/*final=*/false);
  return absl::OkStatus();
}

void Trainer::AnnounceSaved() {
  if (saver_->saved_step() <= announced_step_) return;
  announced_step_ = saver_->saved_step();
  for (const auto& hook : experiment_.train.hooks) hook->AfterSave(*this, saver_->folder());
}

absl::Status Trainer::Save(bool final) {
  if (saver_->busy() && !final) return absl::OkStatus();  // still due after the next step
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Snapshot> snapshot, exchange_->TakeSnapshot());
  cadence_.Saved(progress_.step, base::Clock::Real().Now());
  saver_->Save(std::move(snapshot), final);
  if (final || evaluation_ == nullptr) return absl::OkStatus();
  if (!cadence_.EvaluationDue(progress_.step, base::Clock::Real().Now())) return absl::OkStatus();
  if (!saver_->AwaitWritten().ok()) return absl::OkStatus();  // logged by the saver
  return Evaluate(/*final=*/false);
}

absl::Status Trainer::Evaluate(bool final) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t step, evaluation_->EvaluateNewest(final));
  cadence_.Evaluated(step, base::Clock::Real().Now());
  return absl::OkStatus();
}

absl::Status Trainer::SaveFinal() {
  if (saver_ == nullptr) return absl::OkStatus();
  return end_.SaveFinal(progress_.step, first_step_, *saver_, [this] {
    absl::Status status = Save(/*final=*/true);
    if (status.ok()) status = saver_->Wait();
    AnnounceSaved();
    return status;
  });
}

absl::Status Trainer::End() {
  absl::Status evaluated;
  if (evaluation_ != nullptr) evaluated = Evaluate(/*final=*/true);
  end_.EndTasks(*exchange_, progress_.step, saver_.get());
  MUSTER_RETURN_IF_ERROR(evaluated);
  if (summaries_ != nullptr) summaries_->Flush();
  return model_dir_.SendRest();
}

}  // namespace muster::train
