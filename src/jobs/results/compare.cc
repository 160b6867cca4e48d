#include "jobs/results/compare.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "codec/yaml.h"
#include "job/format/parse.h"
#include "jobs/results/metrics.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

using nlohmann::json;

void Flatten(const json& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& result) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      // A dot within a key is escaped, as in --set.
      const std::string escaped = absl::StrReplaceAll(key, {{".", "\\."}});
      Flatten(member, path.empty() ? escaped : absl::StrCat(path, ".", escaped), result);
    }
    return;
  }
  result.emplace_back(path, value.is_string()
                                ? value.get<std::string>()
                                : value.dump(-1, ' ', false, json::error_handler_t::replace));
}

// Returns the row of `name`, added if it is new, with room for `count` values.
template <typename Row>
Row& RowOf(std::map<std::string, Row>& rows, const std::string& name, size_t count) {
  Row& row = rows[name];
  row.name = name;
  row.values.resize(count);
  return row;
}

template <typename Row>
std::vector<Row> InOrder(std::map<std::string, Row>&& rows) {
  std::vector<Row> result;
  for (auto& [name, row] : rows) result.push_back(std::move(row));
  return result;
}

}  // namespace

bool ParameterRow::differs() const {
  for (const auto& value : values) {
    if (value != values.front()) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> ParametersIn(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> result;
  codec::Diagnostics mistakes("");
  const std::vector<codec::Node> documents =
      codec::ParseYaml(text, {.bytes = job::kMaxJobFileBytes}, mistakes);
  if (!mistakes.empty()) return result;
  for (const codec::Node& document : documents) {
    if (document.kind == codec::Node::Kind::kMap) Flatten(codec::ToJson(document), "", result);
  }
  return result;
}

absl::StatusOr<Comparison> CompareJobs(const std::vector<job::JobRecord>& jobs,
                                       const ExtremesReader& read) {
  Comparison result;
  std::map<std::string, ParameterRow> parameters;
  std::map<std::string, MetricRow> metrics;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto submission = supervise::JobDir(jobs[i].directory).LoadSubmission();
    if (submission.ok()) {
      for (auto& [name, value] : ParametersIn(submission->source)) {
        RowOf(parameters, name, jobs.size()).values[i] = std::move(value);
      }
    } else {
      result.problems.push_back(absl::StrCat(jobs[i].id, ": ", submission.status().message()));
    }
    MUSTER_ASSIGN_OR_RETURN(const JobExtremes found, read(jobs[i]));
    for (const auto& [name, extremes] : found.metrics) {
      RowOf(metrics, name, jobs.size()).values[i] = extremes;
    }
    for (const std::string& problem : found.problems) {
      result.problems.push_back(absl::StrCat(jobs[i].id, ": ", problem));
    }
  }
  result.parameters = InOrder(std::move(parameters));
  result.metrics = InOrder(std::move(metrics));
  return result;
}

absl::StatusOr<Comparison> CompareJobs(Service& service, const std::vector<job::JobRecord>& jobs) {
  return CompareJobs(jobs, [&](const job::JobRecord& job) -> absl::StatusOr<JobExtremes> {
    MUSTER_ASSIGN_OR_RETURN(JobMetrics found, ReadMetrics(service, job));
    JobExtremes result{.problems = std::move(found.problems)};
    for (const auto& [name, points] : found.series) {
      result.metrics.emplace_back(name, metrics::ExtremesOf(points));
    }
    return result;
  });
}

}  // namespace muster::jobs
