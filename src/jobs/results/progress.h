// Progress of a job, from the progress files of its tasks (docs/job-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/event_sink.h"

namespace muster::jobs {

struct Progress {
  int64_t step = 0;                           // not negative
  std::optional<int64_t> steps;               // at least 1; `step` may exceed it
  std::optional<double> loss;                 // NaN if the file has null, NaN or Infinity
  std::optional<double> examples_per_second;  // finite, not negative
};

// Returns nullopt if `text` is not a JSON object with a valid step. Ignores invalid values of other
// keys.
std::optional<Progress> ParseProgress(absl::string_view text);

// Returns nullopt if the file is absent, not a regular file or invalid. Does not block.
std::optional<Progress> ReadProgressFile(const std::string& path);

// Returns the progress of the chief, else of the first task that has a valid progress file, else
// nullopt.
std::optional<Progress> ReadJobProgress(const job::JobRecord& job,
                                        const std::vector<job::TaskRecord>& tasks);

// Returns "loss 0.0712".
std::string DescribeLoss(double loss);
// Returns "5,321 examples/s".
std::string DescribeRate(double examples_per_second);
// Returns a description: "step 760 of 2000, loss 0.0712, 5,321 examples/s".
std::string DescribeProgress(const Progress& progress);

// Estimates the remaining time from an exponentially weighted rate of steps. Not thread-safe.
class ProgressMeter {
 public:
  // Records progress read at `now`. Restarts the estimate if the step decreases.
  void Update(const Progress& progress, absl::Time now);
  // Returns the remaining time, or nullopt if it cannot be estimated yet.
  std::optional<absl::Duration> Left(absl::Time now) const;

 private:
  std::optional<Progress> last_;
  absl::Time first_time_;  // start of the measurement
  absl::Time last_time_;
  absl::Duration interval_;  // between the last two observed steps
  double rate_ = 0;          // steps per second; 0 = unknown
};

}  // namespace muster::jobs
