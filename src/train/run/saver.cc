#include "train/run/saver.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "checkpoint/writer.h"

namespace muster::train {
namespace {

// Periodic checkpoints are not retried: the next one follows. The final one has no successor.
constexpr absl::Duration kFinalRetryTimeout = absl::Minutes(10);
constexpr absl::Duration kFinalRetryInterval = absl::Seconds(10);

}  // namespace

Saver::Saver(Options options) : options_(std::move(options)) {}

Saver::~Saver() = default;

bool Saver::busy() const {
  absl::MutexLock lock(&mutex_);
  return busy_;
}

int64_t Saver::saved_step() const {
  absl::MutexLock lock(&mutex_);
  return saved_step_;
}

std::string Saver::folder() const {
  absl::MutexLock lock(&mutex_);
  return folder_;
}

void Saver::Save(std::unique_ptr<Snapshot> snapshot, bool final) {
  if (thread_.joinable()) thread_.join();  // one checkpoint at a time
  {
    absl::MutexLock lock(&mutex_);
    busy_ = true;
    written_ = false;
  }
  thread_ = std::jthread(
      [this, final, snapshot = std::move(snapshot)]() mutable { Run(std::move(snapshot), final); });
}

absl::Status Saver::Wait() {
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  return status_;
}

absl::Status Saver::AwaitWritten() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Saver::IsWritten));
  return written_ ? absl::OkStatus() : status_;
}

void Saver::Run(std::unique_ptr<Snapshot> snapshot, bool final) {
  ::setpriority(PRIO_PROCESS, 0, 10);  // on Linux: of this thread only
  const auto step = snapshot->state().value("step", int64_t{0});
  const auto folder = Write(*snapshot, final);
  if (!folder.ok()) {
    options_.log(absl::StrCat("the checkpoint of step ", step, " could not be saved: ",
                              folder.status().message(), final ? "" : "; training continues"));
  }
  absl::MutexLock lock(&mutex_);
  busy_ = false;
  status_ = folder.status();
  if (!folder.ok()) return;
  saved_step_ = step;
  folder_ = *folder;
}

absl::Status Saver::Publish(const std::string& folder, bool final) {
  const absl::Time deadline =
      base::Clock::Real().Now() + (final ? kFinalRetryTimeout : absl::ZeroDuration());
  for (;;) {
    const absl::Status status = options_.model_dir->Publish(folder, options_.keep);
    if (!absl::IsUnavailable(status) || base::Clock::Real().Now() > deadline) return status;
    options_.log(absl::StrCat("the last checkpoint could not be sent: ", status.message(),
                              "; retrying for up to ", absl::FormatDuration(kFinalRetryTimeout)));
    absl::SleepFor(kFinalRetryInterval);
  }
}

absl::StatusOr<std::string> Saver::Write(Snapshot& snapshot, bool final) {
  std::vector<base::TensorSpec> weights, slots;
  for (const Variable& variable : options_.variables) weights.push_back(variable.spec);
  for (const Variable& variable : options_.variables) {
    if (variable.kind == Variable::Kind::kBuffer) continue;
    for (const std::string& slot : options_.slots) {
      slots.push_back(variable.spec);
      slots.back().name = absl::StrCat(variable.spec.name, "/", slot);
    }
  }
  nlohmann::json state = options_.state;
  state.update(snapshot.state());
  const auto step = state.value("step", int64_t{0});
  MUSTER_ASSIGN_OR_RETURN(
      const std::unique_ptr<checkpoint::Writer> writer,
      checkpoint::Writer::Begin(options_.model_dir->folder(),
                                {.step = step, .model_name = options_.model_name, .final = final},
                                std::move(weights), std::move(slots)));
  const auto append = [&](absl::Span<const std::byte> bytes) { return writer->Append(bytes); };
  const auto copy = [&](int variable, int slot) -> absl::Status {
    const Area area = AreaOf(options_.variables[variable].kind, slot);
    for (const Extent& extent : ExtentsOf(options_.plans, variable)) {
      MUSTER_RETURN_IF_ERROR(snapshot.Read(extent, area, append));
    }
    return absl::OkStatus();
  };
  // The order in which Writer::Begin() was given the tensors: all weights, then all slots.
  const int count = static_cast<int>(options_.variables.size());
  for (int i = 0; i < count; ++i) MUSTER_RETURN_IF_ERROR(copy(i, -1));
  for (int i = 0; i < count; ++i) {
    if (options_.variables[i].kind == Variable::Kind::kBuffer) continue;
    for (int slot = 0; slot < static_cast<int>(options_.slots.size()); ++slot) {
      MUSTER_RETURN_IF_ERROR(copy(i, slot));
    }
  }
  MUSTER_RETURN_IF_ERROR(writer->Commit(state));
  {
    absl::MutexLock lock(&mutex_);
    written_ = true;
  }
  MUSTER_RETURN_IF_ERROR(Publish(writer->folder(), final));
  return writer->folder();
}

}  // namespace muster::train
