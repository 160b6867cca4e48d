// muster compare: the parameters and metrics of several jobs in one table.
#include "jobs/results/compare.h"

#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/report.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "jobs/find/lookup.h"
#include "jobs/json.h"

namespace muster::cli {
namespace {

using Cells = std::vector<std::string>;

struct CompareOptions {
  std::vector<std::string> jobs;
  TargetOptions target;
  bool all = false;
  bool json = false;
  bool csv = false;
  bool points = false;
};

std::string FormatValue(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 0.001 && size < 100'000);
  return plain ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.3g", value);
}

double UnixSeconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

std::string FormatPoint(const metrics::Point& point) {
  return absl::StrCat(FormatValue(point.value), " (step ", point.step, ")");
}

// The comparison as rows of text: a name, then a cell for each job.
std::vector<Cells> RowsOf(const std::vector<job::JobRecord>& jobs,
                          const jobs::Comparison& comparison, bool all) {
  std::vector<Cells> rows;
  Cells state = {"state"}, ran = {"ran"};
  for (const job::JobRecord& job : jobs) {
    state.emplace_back(job::ToString(job.state));
    ran.push_back(
        job.started ? base::FormatElapsed(job.finished.value_or(absl::Now()) - *job.started) : "");
  }
  rows.push_back(std::move(state));
  rows.push_back(std::move(ran));
  for (const jobs::ParameterRow& parameter : comparison.parameters) {
    if (!all && !parameter.differs()) continue;
    Cells& row = rows.emplace_back(Cells{parameter.name});
    for (const auto& value : parameter.values) row.push_back(value.value_or(""));
  }
  for (const jobs::MetricRow& metric : comparison.metrics) {
    const bool higher = metrics::IsHigherBetter(metric.name);
    Cells last = {absl::StrCat(metric.name, ", last")};
    Cells best = {absl::StrCat(metric.name, higher ? ", highest" : ", lowest")};
    for (const auto& value : metric.values) {
      last.push_back(value ? FormatPoint(value->last) : "");
      best.push_back(value ? FormatPoint(higher ? value->max : value->min) : "");
    }
    rows.push_back(std::move(last));
    rows.push_back(std::move(best));
  }
  return rows;
}

// Quotes a cell as RFC 4180 does.
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvLine(const Cells& cells) {
  return absl::StrCat(absl::StrJoin(cells, ",",
                                    [](std::string* out, const std::string& cell) {
                                      absl::StrAppend(out, CsvCell(cell));
                                    }),
                      "\n");
}

// For programs: a line for each job, a column for each value.
std::string ToCsv(const std::vector<job::JobRecord>& jobs, const jobs::Comparison& comparison,
                  bool all) {
  Cells header = {"job", "state"};
  std::vector<Cells> lines;
  for (const job::JobRecord& job : jobs) {
    lines.push_back({job.id, std::string(job::ToString(job.state))});
  }
  for (const jobs::ParameterRow& row : comparison.parameters) {
    if (!all && !row.differs()) continue;
    header.push_back(row.name);
    for (size_t i = 0; i < jobs.size(); ++i) lines[i].push_back(row.values[i].value_or(""));
  }
  for (const jobs::MetricRow& row : comparison.metrics) {
    for (const char* part : {" last", " last step", " min", " max"}) {
      header.push_back(row.name + part);
    }
    for (size_t i = 0; i < jobs.size(); ++i) {
      const auto& value = row.values[i];
      const auto number = [](double number) { return absl::StrFormat("%.9g", number); };
      lines[i].push_back(value ? number(value->last.value) : "");
      lines[i].push_back(value ? absl::StrCat(value->last.step) : "");
      lines[i].push_back(value ? number(value->min.value) : "");
      lines[i].push_back(value ? number(value->max.value) : "");
    }
  }
  std::string text = CsvLine(header);
  for (const Cells& line : lines) text += CsvLine(line);
  return text;
}

// Likewise, a line for each point.
std::string PointsToCsv(const std::vector<job::JobRecord>& jobs,
                        const jobs::Comparison& comparison) {
  std::string text = CsvLine({"job", "metric", "step", "time", "value"});
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const auto& [name, points] : comparison.series[i]) {
      for (const metrics::Point& point : points) {
        const bool dated = point.time > absl::InfinitePast();
        text += CsvLine({jobs[i].id, name, absl::StrCat(point.step),
                         dated ? absl::StrFormat("%.3f", UnixSeconds(point.time)) : "",
                         absl::StrFormat("%.9g", point.value)});
      }
    }
  }
  return text;
}

// JSON has no NaN; null stands for it.
nlohmann::json ValueToJson(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nullptr;
}

nlohmann::json PointToJson(const metrics::Point& point) {
  return {{"step", point.step}, {"value", ValueToJson(point.value)}};
}

// Returns [[step, value, time], …].
nlohmann::json PointsToJson(const std::vector<metrics::Point>& points) {
  nlohmann::json result = nlohmann::json::array();
  for (const metrics::Point& point : points) {
    const bool dated = point.time > absl::InfinitePast();
    result.push_back({point.step, ValueToJson(point.value),
                      dated ? nlohmann::json(UnixSeconds(point.time)) : nullptr});
  }
  return result;
}

nlohmann::json ToJson(const std::vector<job::JobRecord>& jobs, const jobs::Comparison& comparison,
                      bool with_points) {
  nlohmann::json result = nlohmann::json::array();
  for (size_t i = 0; i < jobs.size(); ++i) {
    nlohmann::json parameters = nlohmann::json::object(), metrics = nlohmann::json::object();
    for (const jobs::ParameterRow& row : comparison.parameters) {
      if (row.values[i]) parameters[row.name] = *row.values[i];
    }
    for (const jobs::MetricRow& row : comparison.metrics) {
      if (const auto& value = row.values[i]) {
        metrics[row.name] = {{"last", PointToJson(value->last)},
                             {"min", PointToJson(value->min)},
                             {"max", PointToJson(value->max)}};
        if (with_points) {
          metrics[row.name]["points"] = PointsToJson(comparison.series[i].at(row.name));
        }
      }
    }
    nlohmann::json job = jobs::JobToJson(jobs[i]);
    job["parameters"] = std::move(parameters);
    job["metrics"] = std::move(metrics);
    result.push_back(std::move(job));
  }
  return result;
}

absl::StatusOr<int> Compare(Context& context, const CompareOptions& options) {
  if (options.points && !options.json && !options.csv) {
    return absl::InvalidArgumentError("--points is for programs: add --json or --csv");
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  std::vector<job::JobRecord> jobs;
  for (const std::string& reference : options.jobs) {
    MUSTER_ASSIGN_OR_RETURN(job::JobRecord job,
                            jobs::FindJob(context.jobs(), reference, selection));
    jobs.push_back(std::move(job));
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Comparison comparison,
                          jobs::CompareJobs(context.jobs(), jobs));
  Terminal& out = context.out();
  for (const std::string& problem : comparison.problems) context.err().Note(problem);
  if (options.json) {
    PrintJson(out, ToJson(jobs, comparison, options.points));
    return kSuccess;
  }
  if (options.csv) {
    out.PrintData(options.points ? PointsToCsv(jobs, comparison)
                                 : ToCsv(jobs, comparison, options.all));
    return kSuccess;
  }
  Cells header = {""};
  for (const job::JobRecord& job : jobs) header.push_back(job.id);
  Table table(std::move(header), 0);
  for (Cells& row : RowsOf(jobs, comparison, options.all)) table.Add(std::move(row));
  out.Print(table.Render(out));
  if (comparison.metrics.empty()) {
    context.err().Note("no job has metrics; docs/job-file.md describes how programs report them");
  }
  return kSuccess;
}

}  // namespace

void AddCompareCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("compare", "Compare the parameters and metrics of jobs");
  auto options = std::make_shared<CompareOptions>();
  command.Argument("JOB", &options->jobs, "The jobs", Presence::kRequired);
  command.Flag("--all", &options->all, "Also list the parameters that all jobs have in common");
  command.Flag("--json", &options->json, "Print JSON");
  command.Flag("--csv", &options->csv, "Print comma-separated values");
  command.Exclude("--json", "--csv");
  command.Flag("--points", &options->points,
               "With --json or --csv: print every point of the metrics");
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return Compare(context, *options); });
}

}  // namespace muster::cli
