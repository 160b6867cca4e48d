// The metrics of a job, whatever program trains.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "jobs/service.h"
#include "metrics/series.h"

namespace muster::jobs {

struct JobMetrics {
  metrics::Series series;
  std::vector<std::string> problems;  // sources that could not be read completely
};

// Returns the metrics that a job has reported so far:
//   1. TensorBoard event files in its model dir, which may be a URL. A metric in a subfolder has
//      the folder in its name: "eval/accuracy". Points from before the job's start or after its end
//      belong to another run in the same model dir and are left out.
//   2. The metrics files of its tasks (MUSTER_METRICS_FILE). A metric of 1 comes first.
//   3. If it has neither: its output, as far as it has been copied to this machine
//      (metrics/line_parser.h).
// For 2 and 3, the chief comes first, then the other tasks in their order; parameter servers are
// left out.
absl::StatusOr<JobMetrics> ReadMetrics(Service& service, const job::JobRecord& job);

}  // namespace muster::jobs
