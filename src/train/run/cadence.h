// The chief's periodic work: when summaries, checkpoints and evaluations are due.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace muster::train {

// A task may see only some of the job's steps. Work that is due every n steps is due once a
// multiple of n has been passed. Not thread-safe.
class Cadence {
 public:
  struct Options {
    int64_t summary_steps = 100;
    // By steps if set, else by time.
    std::optional<int64_t> checkpoint_steps;
    absl::Duration checkpoint_interval = absl::Seconds(600);
    // Both must have passed since the last evaluation.
    int64_t evaluation_steps = 0;
    absl::Duration evaluation_interval;
  };
  explicit Cadence(Options options) : options_(options) {}

  // Counts summaries and checkpoints from `step`, at which the task has joined.
  void Restart(int64_t step, absl::Time now);

  bool SummaryDue(int64_t step) const;
  void Summarized(int64_t step) { summarized_step_ = step; }

  bool CheckpointDue(int64_t step, absl::Time now) const;
  void Saved(int64_t step, absl::Time now);

  bool EvaluationDue(int64_t step, absl::Time now) const;
  void Evaluated(int64_t step, absl::Time now);

 private:
  const Options options_;
  int64_t summarized_step_ = 0;
  int64_t saved_step_ = 0;
  absl::Time saved_at_;
  int64_t evaluated_step_ = 0;
  absl::Time evaluated_at_ = absl::InfinitePast();
};

}  // namespace muster::train
