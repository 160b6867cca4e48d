// The life of a training task:
//
//    Prepare ──> Join ──> Step … Step ──limit──> SaveFinal ──> End
//                  ^          │                     │
//                  └──────────┴──peers lost, with ps┘
//
// After a rejoin the job may be at an earlier step, that of the last checkpoint: data, cadence and
// report start there again.
#include "train/torch/trainer.h"

#include <torch/utils.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "train/run/first_values.h"
#include "train/run/peer.h"
#include "train/torch/earlier_run.h"
#include "train/torch/exchange/collective_exchange.h"
#include "train/torch/exchange/ps_exchange.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/models.h"
#include "train/torch/specs.h"
#include "train/torch/torch_status.h"

namespace muster::train {

Trainer::Trainer(const Experiment& experiment, const Environment& environment, ModelDir& model_dir,
                 wire::Transport& transport, std::function<void(const std::string&)> log)
    : experiment_(experiment),
      environment_(environment),
      model_dir_(model_dir),
      transport_(transport),
      log_(std::move(log)),
      name_(environment.self.ToString()),
      guard_(
          experiment.train.nan_guard, [this] { return At(); }, log_),
      end_(environment, model_dir, experiment.train.max_steps, log_) {
  if (environment.is_chief) {
    outputs_ = std::make_unique<ChiefOutputs>(experiment, environment, model_dir, *this, log_);
  }
}

Trainer::~Trainer() = default;

bool Trainer::shared_steps() const {
  return environment_.Servers() == 0 || StrategyOf(experiment_.train) == Strategy::kSync;
}

std::string Trainer::At() const { return absl::StrCat(name_, ", step ", progress_.step); }

void Trainer::AddScalar(const std::string& tag, double value) {
  if (outputs_ != nullptr) outputs_->AddScalar(tag, progress_.step, value);
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
  MUSTER_ASSIGN_OR_RETURN(input_, TrainInput::Open(experiment_, environment_));
  torch::manual_seed(experiment_.run.seed);
  MUSTER_ASSIGN_OR_RETURN(model_, experiment_.model());
  model_->SetTraining(true);
  MUSTER_RETURN_IF_ERROR(CheckModel(*model_, InputOf(input_->dataset()), experiment_.loss));
  MUSTER_ASSIGN_OR_RETURN(const std::set<std::string> tables, FindTables());
  MUSTER_ASSIGN_OR_RETURN(replica_, Replica::Create(*model_, tables));
  MUSTER_ASSIGN_OR_RETURN(optimizer_, OptimizerOf(experiment_.train));
  exchange_ = MakeExchange();
  replica_->OnGradient([this](int parameter) { OnGradient(parameter); });
  // Fail now, not after the servers were initialized.
  MUSTER_RETURN_IF_ERROR(input_->Check());
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
  MUSTER_RETURN_IF_ERROR(input_->dataset().Read({0}, example));
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
    options.rendezvous = {.rank = std::max(0, input_->rank()),
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
  options.spec.cursors.assign(static_cast<size_t>(input_->world()), 0);
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
       .slots = SlotsOf(optimizer_),
       .world = input_->world(),
       .examples_per_step = input_->examples_per_step(),
       .shared_steps = shared_steps(),
       .log = log_,
       .initial = [replica, fresh](int variable) { return replica->Bytes(variable); }});
}

absl::Status Trainer::Join() {
  MUSTER_ASSIGN_OR_RETURN(progress_, exchange_->Join([this] { return FirstValuesOf(); }));
  has_joined_ = true;
  MUSTER_RETURN_IF_ERROR(input_->Start(progress_));
  stop_.sent = false;
  report_ = std::make_unique<ProgressReport>(
      ProgressReport::Options{.file = environment_.progress_file,
                              .log_every_steps = experiment_.run.log_step_count_steps,
                              .log_steps = environment_.is_chief,
                              .log = log_},
      progress_.step, base::Clock::Real().Now());
  if (outputs_ == nullptr) {
    log_(absl::StrCat("joined at step ", progress_.step));
    return absl::OkStatus();
  }
  outputs_->OnJoined({*model_, *replica_, *exchange_, optimizer_, *input_}, progress_.step);
  return absl::OkStatus();
}

absl::Status Trainer::TrainUntilDone() {
  for (;;) {
    absl::Status status = Loop();
    // Saving the last checkpoint can lose a server, too; then the lost steps are computed again,
    // for which the other tasks are still there.
    if (status.ok()) status = SaveFinal();
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

absl::StatusOr<bool> Trainer::Step() {
  const absl::Time start = base::Clock::Real().Now();
  // Before Begin(), which pulls the rows of tables that the batches use.
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Batch> batches, input_->Next());
  const absl::Time have_input = base::Clock::Real().Now();
  MUSTER_ASSIGN_OR_RETURN(const bool more, exchange_->Begin(batches));
  if (!more) return false;
  for (const auto& hook : experiment_.train.hooks) hook->BeforeStep(*this);
  torch::manual_seed(input_->SeedOf(progress_.sequence));
  bool skipped = false;
  const auto buffers = guard_.may_skip() ? replica_->PackBuffers() : nullptr;
  MUSTER_ASSIGN_OR_RETURN(const double loss, Compute(batches, skipped));
  if (skipped) replica_->UnpackBuffers(*buffers);  // undo the update of running means
  const absl::Time computed = base::Clock::Real().Now();
  const int64_t next = progress_.sequence + 1;
  MUSTER_ASSIGN_OR_RETURN(progress_, exchange_->Finish(skipped));
  replica_->ClearGradients();
  // With backup tasks this task may skip batches, to continue at the step of the others.
  if (progress_.sequence > next) MUSTER_RETURN_IF_ERROR(input_->Seek(progress_.sequence));
  MUSTER_RETURN_IF_ERROR(AfterStep({.step = progress_.step,
                                    .loss = loss,
                                    .examples = input_->examples_per_step(),
                                    .input_time = have_input - start,
                                    .compute_time = computed - have_input,
                                    .exchange_time = base::Clock::Real().Now() - computed}));
  return true;
}

absl::StatusOr<double> Trainer::Compute(const std::vector<Batch>& batches, bool& skipped) {
  double total = 0;
  guard_.BeginStep();
  for (size_t i = 0; i < batches.size() && !skipped; ++i) {
    backward_is_last_ = i + 1 == batches.size();
    absl::Status checked;
    const absl::Status computed = CatchTorch([&] {
      const torch::Tensor outputs = model_->Forward(batches[i].inputs);
      const torch::Tensor loss = experiment_.loss(outputs, batches[i]);
      const double value = loss.item<double>();
      total += value;
      checked = guard_.CheckLoss(value, skipped);
      if (!checked.ok() || skipped) return;
      (batches.size() == 1 ? loss : loss / static_cast<double>(batches.size())).backward();
    });
    if (!computed.ok()) return base::Annotate(computed, At());
    MUSTER_RETURN_IF_ERROR(checked);
  }
  MUSTER_RETURN_IF_ERROR(guard_.CheckGradients());
  return total / static_cast<double>(batches.size());
}

void Trainer::OnGradient(int parameter) {
  // With `accumulate` a gradient is complete only in the last backward pass of a step.
  if (!backward_is_last_) return;
  if (guard_.CheckGradient(parameter, *replica_)) exchange_->OnGradient(parameter);
}

absl::Status Trainer::AfterStep(const StepResult& result) {
  const int64_t examples = result.examples * (shared_steps() ? input_->world() : 1);
  report_->Step(progress_.step, progress_.limit, result.loss, examples, base::Clock::Real().Now());
  for (const auto& hook : experiment_.train.hooks) hook->AfterStep(*this, result);
  if (outputs_ == nullptr) return absl::OkStatus();
  outputs_->Summarize(progress_.step, result.loss, report_->rate(), *replica_);
  if (!stop_.reason.empty() && !stop_.sent) {
    stop_.sent = true;
    log_(absl::StrCat("stopping after step ", progress_.step, ": ", stop_.reason));
    MUSTER_RETURN_IF_ERROR(exchange_->EndAt(progress_.step));
  }
  return outputs_->SaveIfDue(progress_, *exchange_);
}

absl::Status Trainer::SaveFinal() {
  if (outputs_ == nullptr) return exchange_->AwaitEnd();
  return outputs_->SaveFinal(progress_.step, *exchange_, end_);
}

absl::Status Trainer::End() {
  const absl::Status evaluated = outputs_->EvaluateFinal();
  end_.EndTasks(*exchange_, progress_.step, outputs_->saver());
  MUSTER_RETURN_IF_ERROR(evaluated);
  outputs_->FlushSummaries();
  return model_dir_.SendRest();
}

}  // namespace muster::train
