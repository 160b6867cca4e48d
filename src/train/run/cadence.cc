#include "train/run/cadence.h"

namespace muster::train {
namespace {

// Without shared steps, this task sees only some of the job's steps, so an exact multiple may not
// be among them.
bool PassedMultiple(int64_t every, int64_t last, int64_t step) {
  return step / every > last / every;
}

}  // namespace

void Cadence::Restart(int64_t step, absl::Time now) {
  summarized_step_ = step;
  Saved(step, now);
}

bool Cadence::SummaryDue(int64_t step) const {
  return PassedMultiple(options_.summary_steps, summarized_step_, step);
}

bool Cadence::CheckpointDue(int64_t step, absl::Time now) const {
  if (options_.checkpoint_steps.has_value()) {
    return PassedMultiple(*options_.checkpoint_steps, saved_step_, step);
  }
  return now - saved_at_ > options_.checkpoint_interval;
}

void Cadence::Saved(int64_t step, absl::Time now) {
  saved_step_ = step;
  saved_at_ = now;
}

bool Cadence::EvaluationDue(int64_t step, absl::Time now) const {
  return step - evaluated_step_ >= options_.evaluation_steps &&
         now - evaluated_at_ >= options_.evaluation_interval;
}

void Cadence::Evaluated(int64_t step, absl::Time now) {
  evaluated_step_ = step;
  evaluated_at_ = now;
}

}  // namespace muster::train
