#include "train/torch/earlier_run.h"

#include "absl/strings/str_cat.h"
#include "train/torch/specs.h"

namespace muster::train {

absl::Status CheckEarlierRun(ModelDir& model_dir, const Experiment& experiment,
                             const std::function<void(const std::string&)>& log) {
  if (model_dir.place().empty()) return absl::OkStatus();
  const auto last = model_dir.Newest();
  if (!last.ok()) return absl::OkStatus();  // none, or damaged: restoring reports it
  const auto settings = last->state.find("settings");
  if (settings == last->state.end()) return absl::OkStatus();
  const std::string differences = DifferencesOf(*settings, SettingsOf(experiment));
  if (differences.empty()) return absl::OkStatus();
  const std::string job = last->job();
  const std::string trained =
      absl::StrCat(model_dir.place(), " was trained to step ", last->step,
                   job.empty() ? "" : absl::StrCat(" by ", job), " with other settings");
  if (last->step < experiment.train.max_steps) {
    log(absl::StrCat(trained, " (", differences, "); continuing from there"));
    return absl::OkStatus();
  }
  // The remedy precedes the differences, since reports truncate long causes.
  return absl::FailedPreconditionError(
      absl::StrCat("nothing was trained: ", trained,
                   "; start anew with `muster run --fresh`, which moves that run aside, or use "
                   "another model_dir. Differences: ",
                   differences));
}

}  // namespace muster::train
