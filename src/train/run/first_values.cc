#include "train/run/first_values.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/compare.h"
#include "checkpoint/format.h"
#include "checkpoint/reader.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "storage/local_copy.h"

namespace muster::train {
namespace {

std::vector<base::TensorSpec> SpecsOf(const std::vector<Variable>& variables) {
  std::vector<base::TensorSpec> specs;
  for (const Variable& variable : variables) specs.push_back(variable.spec);
  return specs;
}

// The model's initial values; some variables from a warm-start checkpoint.
class InitialValues final : public ValueSource {
 public:
  InitialValues(const FirstValuesOptions& options, std::optional<checkpoint::Checkpoint> source)
      : initial_(options.initial), source_(std::move(source)) {
    if (!source_) return;
    for (size_t i = 0; i < options.variables.size(); ++i) {
      const base::TensorSpec& wanted = options.variables[i].spec;
      for (const base::TensorSpec& stored : source_->weights()) {
        if (stored != wanted) continue;
        auto bytes = source_->Weight(wanted.name);
        if (bytes.ok()) borrowed_[static_cast<int>(i)] = *bytes;
      }
    }
    options.log(absl::StrCat("warm start from step ", source_->step(), " in ", source_->folder(),
                             ": ", borrowed_.size(), " of ", options.variables.size(), " tensors"));
  }
  bool has_values() const { return !borrowed_.empty(); }

  Progress progress() const override { return {}; }
  std::vector<int64_t> cursors() const override { return {}; }
  absl::Span<const std::byte> Values(int variable) const override {
    const auto found = borrowed_.find(variable);
    return found == borrowed_.end() ? initial_(variable) : found->second;
  }
  absl::Span<const std::byte> Slot(int /*variable*/, int /*slot*/) const override { return {}; }

 private:
  std::function<absl::Span<const std::byte>(int)> initial_;
  std::optional<checkpoint::Checkpoint> source_;
  std::map<int, absl::Span<const std::byte>> borrowed_;
};

class CheckpointValues final : public ValueSource {
 public:
  CheckpointValues(const FirstValuesOptions& options, checkpoint::Checkpoint stored)
      : variables_(options.variables), slots_(options.slots), stored_(std::move(stored)) {
    const nlohmann::json& state = stored_.state();
    const auto world = state.value("world", 0);
    const auto examples = state.value("examples_per_step", int64_t{0});
    progress_.step = stored_.step();
    progress_.data = DataOrigin::FromJson(state.value("data", nlohmann::json::object()));
    const auto cursors = state.value("cursors", std::vector<int64_t>());
    // A checkpoint of an async run has different cursors; a sync run cannot continue with them,
    // since there a task's sequence is the job's step.
    const bool in_step = std::all_of(cursors.begin(), cursors.end(),
                                     [&](int64_t cursor) { return cursor == progress_.step; });
    if (world == options.world && examples == options.examples_per_step &&
        (in_step || !options.shared_steps)) {
      cursors_ = cursors;
      return;
    }
    // The number of tasks or batch size differs: continue after all examples used so far.
    for (const int64_t cursor : cursors) {
      progress_.data.base += (cursor - progress_.data.first) * examples;
    }
    progress_.data.first = progress_.step;
    cursors_.assign(static_cast<size_t>(options.world), progress_.step);
  }

  Progress progress() const override { return progress_; }
  std::vector<int64_t> cursors() const override { return cursors_; }
  absl::Span<const std::byte> Values(int variable) const override {
    return stored_.Weight(variables_[variable].spec.name).value_or(absl::Span<const std::byte>());
  }
  absl::Span<const std::byte> Slot(int variable, int slot) const override {
    return stored_.Slot(absl::StrCat(variables_[variable].spec.name, "/", slots_[slot]))
        .value_or(absl::Span<const std::byte>());
  }

 private:
  const std::vector<Variable> variables_;
  const std::vector<std::string> slots_;
  const checkpoint::Checkpoint stored_;
  Progress progress_;
  std::vector<int64_t> cursors_;
};

// Fetches a checkpoint, or the newest one of a model dir, from a remote storage and returns the
// folder of its local copy.
absl::StatusOr<std::string> FetchWarmStart(const std::string& place,
                                           const FirstValuesOptions& options) {
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(place));
  checkpoint::RemoteStore store(storage, url);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.Steps());
  if (steps.empty()) {
    return storage::LocalCopy(storage, url, storage::CacheFolder(), options.log);
  }
  const std::string folder =
      base::JoinPath(storage::CacheFolderOf(url, storage::CacheFolder()), url.name);
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder, 0700));
  // Several jobs on this machine may start from the same checkpoint: one fetches, the others wait.
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock lock,
      base::FileLock::Acquire(base::JoinPath(folder, ".lender"), absl::Hours(1)));
  MUSTER_RETURN_IF_ERROR(store.Fetch(steps.back(), folder));
  return checkpoint::CheckpointPath(folder, steps.back());
}

absl::StatusOr<checkpoint::Checkpoint> OpenWarmStart(const FirstValuesOptions& options) {
  std::string path = storage::LocalPath(options.warm_start);
  if (storage::IsRemote(path)) {
    MUSTER_ASSIGN_OR_RETURN(path, FetchWarmStart(path, options));
  }
  const bool is_checkpoint = std::filesystem::exists(base::JoinPath(path, "manifest.json"));
  auto source = is_checkpoint ? checkpoint::Checkpoint::Open(path)
                              : checkpoint::Restore(path, std::nullopt, nullptr);
  if (source.ok()) return source;
  return base::Annotate(source.status(),
                        absl::StrCat("cannot warm start from ", options.warm_start));
}

// Logs slots that the checkpoint lacks: they start as zeros.
void ReportSlots(const FirstValuesOptions& options, const checkpoint::Checkpoint& stored) {
  for (const std::string& slot : options.slots) {
    for (const Variable& variable : options.variables) {
      if (variable.kind == Variable::Kind::kBuffer) continue;
      if (stored.Slot(absl::StrCat(variable.spec.name, "/", slot)).ok()) continue;
      options.log(absl::StrCat("the checkpoint has no optimizer state '", slot,
                               "': it was saved with another optimizer; starting from zeros"));
      return;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ValueSource>> ReadFirstValues(const FirstValuesOptions& options) {
  std::vector<std::string> skipped;
  auto stored = options.model_dir.empty()
                    ? absl::NotFoundError("no model dir")
                    : checkpoint::Restore(options.model_dir, std::nullopt, &skipped);
  for (const std::string& line : skipped) options.log(absl::StrCat("skipped a checkpoint: ", line));
  if (stored.ok()) {
    const auto differences = checkpoint::Differences(SpecsOf(options.variables), stored->weights());
    if (!differences.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          options.model_dir, " holds another model: ", absl::StrJoin(differences, "; "),
          "; use another model_dir, or the model that it was trained with"));
    }
    options.log(absl::StrCat("restored step ", stored->step(), " from ", stored->folder()));
    ReportSlots(options, *stored);
    return std::make_unique<CheckpointValues>(options, *std::move(stored));
  }
  if (!absl::IsNotFound(stored.status())) return stored.status();
  if (options.warm_start.empty()) return std::make_unique<InitialValues>(options, std::nullopt);
  MUSTER_ASSIGN_OR_RETURN(checkpoint::Checkpoint source, OpenWarmStart(options));
  auto values = std::make_unique<InitialValues>(options, std::move(source));
  if (values->has_values()) return values;
  return absl::FailedPreconditionError(
      absl::StrCat(options.warm_start, " has no tensor with a name and shape of this model"));
}

}  // namespace muster::train
