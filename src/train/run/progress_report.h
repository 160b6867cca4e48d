// Reports a job's progress: lines in the log, and the progress file.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"

namespace muster::train {

class ProgressReport {
 public:
  struct Options {
    std::string file;  // MUSTER_PROGRESS_FILE; "": none
    int64_t log_every_steps = 100;
    bool log_steps = true;  // only the chief logs
    std::function<void(const std::string&)> log;
  };
  ProgressReport(Options options, int64_t first_step, absl::Time now);

  // Call it after each step. `examples`: of the whole job in a step.
  void Step(int64_t step, int64_t limit, double loss, int64_t examples, absl::Time now);
  // Returns the recent rate of the whole job, in examples per second.
  double rate() const { return rate_; }

 private:
  void WriteFile(int64_t step, int64_t limit, double loss, absl::Time now);

  const Options options_;
  int64_t counted_step_;
  absl::Time counted_at_;
  int64_t logged_step_;
  absl::Time written_at_;
  double rate_ = 0;
};

}  // namespace muster::train
