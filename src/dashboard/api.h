// The HTTP API of docs/dashboard.openapi.yaml, without its stream and its sessions.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "dashboard/feed.h"
#include "dashboard/http.h"
#include "dashboard/metrics_cache.h"
#include "dashboard/services.h"

namespace muster::dashboard {

// What the functions of the API work with.
struct ApiContext {
  jobs::Service& service;
  Feed& feed;
  MetricsCache& metrics;
};

// One function per operation; the ids of their paths are in `job`. Errors become answers.
using Operation = absl::StatusOr<Response> (*)(ApiContext& context, const Request& request,
                                               const std::string& job);

// Reading: api_jobs.cc, api_metrics.cc.
absl::StatusOr<Response> ListJobs(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetJob(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetFile(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetEvents(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetLogs(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetSamples(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetCheckpoints(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetGraph(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetMetrics(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> GetSeries(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> Compare(ApiContext&, const Request&, const std::string& job);

// Changing: api_actions.cc.
absl::StatusOr<Response> StopJob(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> ResumeJob(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> EvaluateJob(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> RunAgain(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> RemoveJob(ApiContext&, const Request&, const std::string& job);
absl::StatusOr<Response> SetNotes(ApiContext&, const Request&, const std::string& job);

// Returns the job with exactly this id, or NotFound.
absl::StatusOr<job::JobRecord> JobWithId(ApiContext& context, const std::string& id);
// Returns the JobSummary of a job.
nlohmann::json SummaryOf(ApiContext& context, const job::JobRecord& job);

// Serves the requests of the API. Thread-safe.
class Api {
 public:
  Api(ServicePool& services, Feed& feed) : services_(services), feed_(feed) {}

  // Returns the answer, which is an error for unknown paths and methods. REQUIRES: the request was
  // authorized (dashboard/access.h).
  Response Handle(const Request& request);

 private:
  ServicePool& services_;
  Feed& feed_;
  MetricsCache metrics_;
};

}  // namespace muster::dashboard
