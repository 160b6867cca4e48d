#include "dashboard/api.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "dashboard/views.h"

namespace muster::dashboard {
namespace {

struct Route {
  const char* method;
  const char* path;  // "*" stands for the id of a job
  Operation operation;
};

constexpr std::array kRoutes = {
    Route{"GET", "/api/jobs", ListJobs},
    Route{"GET", "/api/jobs/*", GetJob},
    Route{"DELETE", "/api/jobs/*", RemoveJob},
    Route{"GET", "/api/jobs/*/file", GetFile},
    Route{"GET", "/api/jobs/*/events", GetEvents},
    Route{"GET", "/api/jobs/*/logs", GetLogs},
    Route{"GET", "/api/jobs/*/samples", GetSamples},
    Route{"GET", "/api/jobs/*/checkpoints", GetCheckpoints},
    Route{"GET", "/api/jobs/*/graph", GetGraph},
    Route{"GET", "/api/metrics", GetMetrics},
    Route{"GET", "/api/series", GetSeries},
    Route{"GET", "/api/compare", Compare},
    Route{"POST", "/api/jobs/*/stop", StopJob},
    Route{"POST", "/api/jobs/*/resume", ResumeJob},
    Route{"POST", "/api/jobs/*/evaluate", EvaluateJob},
    Route{"POST", "/api/jobs/*/run", RunAgain},
    Route{"PUT", "/api/jobs/*/notes", SetNotes},
};

// Returns whether the path matches the pattern, and sets `job` to the part at its "*".
bool Matches(const std::string& path, const char* pattern, std::string& job) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const std::vector<std::string> wanted = absl::StrSplit(pattern, '/');
  if (parts.size() != wanted.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (wanted[i] == "*") {
      job = parts[i];
    } else if (parts[i] != wanted[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<job::JobRecord> JobWithId(ApiContext& context, const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.service.history());
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, history->GetJob(id));
  return context.feed.WithReachability(std::move(job));
}

nlohmann::json SummaryOf(ApiContext& context, const job::JobRecord& job) {
  const auto notes = jobs::ReadNotes(context.service.home());
  return SummaryOf(context.service, job, jobs::NotesOf(notes, job.id));
}

Response Api::Handle(const Request& request) {
  const Route* found = nullptr;
  std::vector<std::string> methods;  // that the path has
  std::string job;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : kRoutes) {
    if (!Matches(request.path, route.path, job)) continue;
    methods.emplace_back(route.method);
    if (method == route.method) found = &route;
    if (found != nullptr) break;
  }
  if (found == nullptr && methods.empty()) {
    return ErrorResponse(404, "NOT_FOUND", absl::StrCat("no ", request.path));
  }
  if (found == nullptr) {
    Response refused = ErrorResponse(405, "METHOD_NOT_ALLOWED",
                                     absl::StrCat(request.path, " has no ", request.method));
    refused.headers.emplace_back("Allow", absl::StrJoin(methods, ", "));
    return refused;
  }
  ServicePool::Lease service = services_.Take();
  ApiContext context{.service = *service, .feed = feed_, .metrics = metrics_};
  auto response = found->operation(context, request, job);
  return response.ok() ? *std::move(response) : ErrorResponse(response.status());
}

}  // namespace muster::dashboard
