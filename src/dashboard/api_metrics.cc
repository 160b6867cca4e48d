// Reads metrics: their series, the comparison of runs, and the graph.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "dashboard/api.h"
#include "dashboard/params.h"
#include "jobs/results/compare.h"
#include "jobs/results/graph.h"
#include "metrics/down_sample.h"
#include "supervise/job_dir.h"

namespace muster::dashboard {
namespace {

using nlohmann::json;

constexpr size_t kMaxJobs = 200;

// Returns the jobs of the request's `job` parameters, each once.
absl::StatusOr<std::vector<job::JobRecord>> JobsOf(ApiContext& context, const Request& request) {
  const std::vector<std::string> ids = Texts(request, "job");
  if (ids.empty() || ids.size() > kMaxJobs) {
    return absl::InvalidArgumentError(absl::StrCat("name 1 to ", kMaxJobs, " jobs: ?job=ID"));
  }
  std::vector<job::JobRecord> jobs;
  std::set<std::string> seen;
  for (const std::string& id : ids) {
    if (!seen.insert(id).second) continue;
    MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, JobWithId(context, id));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// JSON has no NaN and no infinity.
json NumberOrNull(double value) { return std::isfinite(value) ? json(value) : json(); }

json SeriesToJson(const std::string& job, const CachedSeries& series, size_t max_points) {
  json steps = json::array(), times = json::array(), values = json::array();
  for (const metrics::Point& point : metrics::DownSample(series.points, max_points)) {
    steps.push_back(point.step);
    times.push_back(point.time == absl::InfinitePast()
                        ? json()
                        : json(absl::ToDoubleSeconds(point.time - absl::UnixEpoch())));
    values.push_back(NumberOrNull(point.value));
  }
  return {{"job", job},
          {"name", series.name},
          {"count", series.count},
          {"steps", std::move(steps)},
          {"times", std::move(times)},
          {"values", std::move(values)}};
}

json MetricToJson(const std::string& job, const CachedSeries& series) {
  return {{"job", job},
          {"name", series.name},
          {"count", series.count},
          {"first_step", series.points.front().step},
          {"last_step", series.extremes.last.step},
          {"last", NumberOrNull(series.extremes.last.value)},
          {"min", NumberOrNull(series.extremes.min.value)},
          {"max", NumberOrNull(series.extremes.max.value)}};
}

void AddProblems(const std::string& job, const std::vector<std::string>& problems, json& list) {
  for (const std::string& problem : problems) list.push_back(absl::StrCat(job, ": ", problem));
}

}  // namespace

absl::StatusOr<Response> GetMetrics(ApiContext& context, const Request& request,
                                    const std::string& /*job*/) {
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, JobsOf(context, request));
  json result = {{"metrics", json::array()}, {"problems", json::array()}};
  for (const job::JobRecord& job : jobs) {
    MUSTER_ASSIGN_OR_RETURN(const auto metrics, context.metrics.Get(context.service, job));
    for (const CachedSeries& series : metrics->series) {
      result["metrics"].push_back(MetricToJson(job.id, series));
    }
    AddProblems(job.id, metrics->problems, result["problems"]);
  }
  return JsonResponse(result);
}

absl::StatusOr<Response> GetSeries(ApiContext& context, const Request& request,
                                   const std::string& /*job*/) {
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, JobsOf(context, request));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t points,
      Integer(request, {.name = "points", .fallback = 1000, .min = 10, .max = kMaxSeriesPoints}));
  const std::vector<std::string> names = Texts(request, "name");
  const std::set<std::string> wanted(names.begin(), names.end());
  json result = {{"series", json::array()}, {"problems", json::array()}};
  for (const job::JobRecord& job : jobs) {
    MUSTER_ASSIGN_OR_RETURN(const auto metrics, context.metrics.Get(context.service, job));
    for (const CachedSeries& series : metrics->series) {
      if (!wanted.empty() && !wanted.contains(series.name)) continue;
      result["series"].push_back(SeriesToJson(job.id, series, static_cast<size_t>(points)));
    }
    AddProblems(job.id, metrics->problems, result["problems"]);
  }
  return JsonResponse(result);
}

absl::StatusOr<Response> Compare(ApiContext& context, const Request& request,
                                 const std::string& /*job*/) {
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, JobsOf(context, request));
  MUSTER_ASSIGN_OR_RETURN(
      const jobs::Comparison comparison,
      jobs::CompareJobs(jobs, [&](const job::JobRecord& job) -> absl::StatusOr<jobs::JobExtremes> {
        MUSTER_ASSIGN_OR_RETURN(const auto metrics, context.metrics.Get(context.service, job));
        jobs::JobExtremes result{.problems = metrics->problems};
        for (const CachedSeries& series : metrics->series) {
          result.metrics.emplace_back(series.name, series.extremes);
        }
        return result;
      }));
  json result = {{"jobs", json::array()},
                 {"parameters", json::array()},
                 {"metrics", json::array()},
                 {"problems", comparison.problems}};
  for (const job::JobRecord& job : jobs) result["jobs"].push_back(job.id);
  for (const jobs::ParameterRow& row : comparison.parameters) {
    json values = json::array();
    for (const auto& value : row.values) values.push_back(value ? json(*value) : json());
    result["parameters"].push_back(
        {{"name", row.name}, {"differs", row.differs()}, {"values", std::move(values)}});
  }
  for (const jobs::MetricRow& row : comparison.metrics) {
    json values = json::array();
    for (const auto& value : row.values) {
      values.push_back(value ? json({{"last", NumberOrNull(value->last.value)},
                                     {"last_step", value->last.step},
                                     {"min", NumberOrNull(value->min.value)},
                                     {"max", NumberOrNull(value->max.value)}})
                             : json());
    }
    result["metrics"].push_back({{"name", row.name}, {"values", std::move(values)}});
  }
  return JsonResponse(result);
}

absl::StatusOr<Response> GetGraph(ApiContext& context, const Request& /*request*/,
                                  const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  MUSTER_ASSIGN_OR_RETURN(const jobs::ModelGraph graph, jobs::ReadGraph(job));
  json result = {{"nodes", json::array()}, {"devices", json::array()}};
  for (const summary::DecodedNode& node : graph.nodes) {
    result["nodes"].push_back({{"name", node.name},
                               {"op", node.op},
                               {"device", node.device},
                               {"inputs", node.inputs},
                               {"shape", node.shape ? json(*node.shape) : json()},
                               {"bytes", node.bytes ? json(*node.bytes) : json()}});
  }
  for (const jobs::GraphDevice& device : graph.devices) {
    result["devices"].push_back({{"device", device.name},
                                 {"task", device.task ? json(device.task->ToString()) : json()},
                                 {"bytes", device.bytes}});
  }
  return JsonResponse(result);
}

}  // namespace muster::dashboard
