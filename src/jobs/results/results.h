// Jobs of the built-in trainer: their train section, and the results in their model dir.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/submission.h"

namespace muster::jobs {

// Returns the stored submission of the job, or FailedPrecondition if it has no train section.
absl::StatusOr<job::Submission> TrainSubmission(const job::JobRecord& job);

struct LatestCheckpoint {
  int64_t step = 0;
  std::string made_by;  // the id of the job that saved it; "" = unknown
};

// The first, most important metric of the latest evaluation. Texts come from a file that anybody
// may write.
struct LatestEvaluation {
  std::string name;  // of the model; "" = none
  std::string metric;
  double value = 0;
  std::optional<uint64_t> step;
  std::string made_by;
};

struct TrainingResult {
  std::optional<LatestCheckpoint> checkpoint;
  std::optional<LatestEvaluation> evaluation;
};

// Returns the results in the model dir, or none if the job has no train section. Reads a remote
// model dir only if the job succeeded. Omits results of other runs if the job failed.
TrainingResult ReadTrainingResult(const job::JobRecord& job);

struct CheckpointInfo {
  int64_t step = 0;
  std::optional<absl::Time> written;
  int64_t bytes = 0;
  bool final = false;
  bool best = false;
  std::string made_by;                                  // the id of a job; "" = unknown
  std::vector<std::pair<std::string, double>> metrics;  // of its evaluation, as far as recorded
};

// Returns the usable checkpoints of a model dir (a path or a URL), newest first. Those without a
// recorded evaluation have no metrics. The first 100 have `made_by`.
absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(const std::string& model_dir);

// Returns NotFound, listing the usable checkpoints, if the model dir (a path or a URL) has no
// usable checkpoint of that step.
absl::Status CheckCheckpoint(const std::string& model_dir, int64_t step);

}  // namespace muster::jobs
