// How far a job is, as its tasks tell in their progress files (docs/job-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/terminal.h"
#include "job/event_sink.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

struct Progress {
  int64_t step = 0;                           // not negative
  std::optional<int64_t> steps;               // at least 1; `step` may be beyond it all the same
  std::optional<double> loss;                 // NaN when it was written as null, NaN or Infinity
  std::optional<double> examples_per_second;  // finite, not negative
};

// nullopt for what is not a JSON object with a step. Of the other keys, values that make no sense
// are left out.
std::optional<Progress> ParseProgress(absl::string_view text);

// nullopt also when there is none, or something else in its place.
std::optional<Progress> ReadProgressFile(const std::string& path);

// That of the chief, else of the first task that tells.
std::optional<Progress> ReadJobProgress(const JobRecord& job, const std::vector<TaskRecord>& tasks);

// "step 760 of 2000, loss 0.0712, 5,321 examples/s".
std::string DescribeProgress(const Progress& progress);
// Absent values are null.
nlohmann::json ProgressToJson(const Progress& progress);

// Estimates the time left from the progress seen so far. Recent steps count more than old ones.
class ProgressMeter {
 public:
  void Update(const Progress& progress, absl::Time now);
  // nullopt as long as it cannot be told.
  std::optional<absl::Duration> Left(absl::Time now) const;

 private:
  std::optional<Progress> last_;
  absl::Time first_time_;  // of the steps that the rate is made of
  absl::Time last_time_;
  absl::Duration interval_;  // between the last two steps that were seen
  double rate_ = 0;          // steps per second; 0 = not known yet
};

// "  38% ████████▌           step 760/2000  loss 0.0712  5,321 examples/s  0:42 left", in one line
// of the terminal less a cell: a narrow one gets a shorter bar, then fewer fields.
std::string ProgressLine(const Terminal& terminal, const Progress& progress,
                         std::optional<absl::Duration> left);

}  // namespace muster::cli
