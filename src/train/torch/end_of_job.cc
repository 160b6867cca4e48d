#include "train/torch/end_of_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/store.h"

namespace muster::train {

EndOfJob::EndOfJob(const Environment& environment, ModelDir& model_dir, int64_t max_steps,
                   std::function<void(const std::string&)> log)
    : environment_(environment),
      model_dir_(model_dir),
      max_steps_(max_steps),
      log_(std::move(log)) {}

bool EndOfJob::HasEnded() const {
  if (environment_.job_id.empty() || environment_.model_dir.empty()) return false;
  const auto last = model_dir_.Newest();
  if (!last.ok() || !last->final) return false;
  const bool nothing_to_do = !environment_.resume_step && last->step >= max_steps_;
  return nothing_to_do || last->job() == environment_.job_id;
}

absl::Status EndOfJob::SaveFinal(int64_t step, int64_t first_step, Saver& saver,
                                 absl::FunctionRef<absl::Status()> save) {
  saver.Wait().IgnoreError();  // of an earlier checkpoint, and logged
  const std::vector<checkpoint::Entry> entries = checkpoint::List(environment_.model_dir);
  const auto saved = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.status.ok() && entry.step == step && entry.final;
  });
  if (saved != entries.end() && step == first_step) {
    nothing_to_do_ = true;
    log_(absl::StrCat("trained to step ", step, " already; nothing to do"));
    // An earlier attempt may have been interrupted while it sent the checkpoint.
    return base::Annotate(saver.Publish(saved->folder, /*final=*/true),
                          "the last checkpoint could not be sent");
  }
  const absl::Status status = save();
  return status.ok() ? status : base::Annotate(status, "the last checkpoint could not be saved");
}

void EndOfJob::EndTasks(Exchange& exchange, int64_t step, const Saver* saver) {
  // Everything is saved: the launcher ends tasks that cannot be notified.
  if (const absl::Status ended = exchange.EndJob(); !ended.ok()) {
    log_(absl::StrCat("cannot notify all tasks of the end of the job: ", ended.message()));
  }
  if (saver == nullptr) return;
  const int64_t last = std::max(step, saver->saved_step());
  log_(absl::StrCat(nothing_to_do_ ? "" : absl::StrCat("trained to step ", last, "; "),
                    "checkpoints in ", model_dir_.place()));
}

}  // namespace muster::train
