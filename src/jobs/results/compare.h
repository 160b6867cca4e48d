// Compares runs: their parameters and their metrics.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "jobs/service.h"
#include "metrics/series.h"

namespace muster::jobs {

// The values of the jobs, in their order; nullopt = the job has none.
struct ParameterRow {
  std::string name;  // a path in the job file, as in --set: "train.optimizer.type"
  std::vector<std::optional<std::string>> values;

  bool differs() const;
};
struct MetricRow {
  std::string name;
  std::vector<std::optional<metrics::Extremes>> values;
};

struct Comparison {
  std::vector<ParameterRow> parameters;  // ordered by name
  std::vector<MetricRow> metrics;        // likewise
  // All points of each job, in the order of the jobs; empty with an ExtremesReader.
  std::vector<metrics::Series> series;
  std::vector<std::string> problems;  // "mnist-x7k2q: …"
};

// Returns the parameters of a job file's text as "path: value" pairs, ordered by path. Lists are
// one value. Empty if the text cannot be parsed.
std::vector<std::pair<std::string, std::string>> ParametersIn(const std::string& text);

// The metrics of a job that a comparison shows.
struct JobExtremes {
  std::vector<std::pair<std::string, metrics::Extremes>> metrics;  // by name
  std::vector<std::string> problems;
};
using ExtremesReader = std::function<absl::StatusOr<JobExtremes>(const job::JobRecord&)>;

// Compares jobs whose metrics `read` returns. A job without a readable submission has no
// parameters, with a problem.
absl::StatusOr<Comparison> CompareJobs(const std::vector<job::JobRecord>& jobs,
                                       const ExtremesReader& read);
// Likewise with the metrics of ReadMetrics().
absl::StatusOr<Comparison> CompareJobs(Service& service, const std::vector<job::JobRecord>& jobs);

}  // namespace muster::jobs
