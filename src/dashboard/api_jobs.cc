// Reads jobs: their records, files, events, logs, samples and checkpoints.
#include <algorithm>
#include <dtl/dtl.hpp>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "dashboard/api.h"
#include "dashboard/params.h"
#include "dashboard/views.h"
#include "jobs/find/lookup.h"
#include "jobs/find/tasks.h"
#include "jobs/json.h"
#include "jobs/results/compare.h"
#include "jobs/results/log_filter.h"
#include "jobs/results/results.h"
#include "jobs/results/samples.h"
#include "supervise/job_dir.h"
#include "supervise/log/log_page.h"

namespace muster::dashboard {
namespace {

using nlohmann::json;

constexpr int kMaxDetailedJobs = 200;
constexpr size_t kMaxDiffLines = 5000;

// Returns the ids of the jobs with a tag that contains `text`, in any case.
std::vector<std::string> TaggedWith(const std::map<std::string, jobs::Notes>& notes,
                                    const std::string& text) {
  constexpr size_t kMaxIds = 10'000;  // of parameters of a query
  std::vector<std::string> ids;
  const std::string wanted = absl::AsciiStrToLower(text);
  for (const auto& [id, note] : notes) {
    const bool has = std::any_of(note.tags.begin(), note.tags.end(), [&](const std::string& tag) {
      return absl::StrContains(absl::AsciiStrToLower(tag), wanted);
    });
    if (has && ids.size() < kMaxIds) ids.push_back(id);
  }
  return ids;
}

json CountsToJson(const std::map<job::JobState, int>& counts) {
  json result = json::object();
  for (const auto& [state, count] : counts) result[std::string(job::ToString(state))] = count;
  return result;
}

void AddDetails(ApiContext& context, const job::JobRecord& job, json& summary) {
  json parameters = json::object(), values = json::object();
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (submission.ok()) {
    for (const auto& [name, value] : jobs::ParametersIn(submission->source)) {
      parameters[name] = value;
    }
  }
  const auto metrics = context.metrics.Get(context.service, job);
  if (metrics.ok()) {
    for (const CachedSeries& series : (*metrics)->series) {
      values[series.name] = series.extremes.last.value;
    }
  }
  summary["parameters"] = std::move(parameters);
  summary["metrics"] = std::move(values);
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// Returns the lines of both texts; those of `before` alone are removed.
absl::StatusOr<json> DiffOf(const std::string& before, const std::string& after) {
  const auto old_lines = LinesOf(before), new_lines = LinesOf(after);
  if (old_lines.size() + new_lines.size() > kMaxDiffLines) {
    return absl::OutOfRangeError("the job files are too long to compare");
  }
  dtl::Diff<std::string> diff(old_lines, new_lines);
  diff.compose();
  json lines = json::array();
  for (const auto& [text, info] : diff.getSes().getSequence()) {
    lines.push_back({{"change", info.type == dtl::SES_ADD      ? "added"
                                : info.type == dtl::SES_DELETE ? "removed"
                                                               : "same"},
                     {"text", text}});
  }
  return lines;
}

absl::StatusOr<std::string> SourceOf(ApiContext& context, const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  return std::move(submission.source);
}

// Adds the values of evaluations, "eval/accuracy", at exactly this step.
void AddValuesAt(const CachedMetrics& metrics, int64_t step, json& values) {
  for (const CachedSeries& series : metrics.series) {
    absl::string_view name = series.name;
    if (!absl::ConsumePrefix(&name, "eval/")) continue;
    const auto found = std::lower_bound(
        series.points.begin(), series.points.end(), step,
        [](const metrics::Point& point, int64_t wanted) { return point.step < wanted; });
    if (found != series.points.end() && found->step == step) {
      values[std::string(name)] = found->value;
    }
  }
}

json LineToJson(const supervise::LogLine& line) {
  return {{"task", line.task.ToString()},
          {"attempt", line.attempt + 1},
          {"time", absl::FormatTime(absl::RFC3339_full, line.time, absl::UTCTimeZone())},
          {"text", base::Printable(line.text, base::Colours::kNone)}};
}

absl::StatusOr<supervise::LogPageQuery> LogQueryOf(ApiContext& context, const Request& request,
                                                   const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  supervise::LogPageQuery query{.directory = supervise::JobDir(job.directory).logs(),
                                .complete = job::IsFinal(job.state)};
  MUSTER_ASSIGN_OR_RETURN(query.tasks, jobs::SelectTasks(job.id, tasks, Texts(request, "task")));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t limit,
      Integer(request, {.name = "limit", .fallback = 500, .min = 1, .max = 5000}));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t attempt,
      Integer(request, {.name = "attempt", .min = 1, .max = std::numeric_limits<int>::max()}));
  query.limit = static_cast<int>(limit);
  jobs::LogQuery wanted{.pattern = Text(request, "grep")};
  if (attempt > 0) wanted.attempt = static_cast<int>(attempt);
  if (!wanted.empty()) {
    MUSTER_ASSIGN_OR_RETURN(query.condition, jobs::MakeLogCondition(wanted));
  }
  return query;
}

// Copies output that is elsewhere to this machine, as far as that is quick.
void FetchLogs(ApiContext& context, const job::JobRecord& job,
               const std::vector<cluster::TaskId>& tasks) {
  constexpr absl::Duration kMaxTime = absl::Seconds(3);
  const auto platform = context.service.platform(job.platform);
  if (!platform.ok() || (*platform)->traits().runs_here || job::IsFinal(job.state)) return;
  const auto stream = (*platform)->Logs(job, tasks);
  if (!stream.ok()) return;
  (*stream)->SeekTail(1);
  const absl::Time deadline = absl::Now() + kMaxTime;
  while ((*stream)->Next() && absl::Now() < deadline) {
  }
}

}  // namespace

absl::StatusOr<Response> ListJobs(ApiContext& context, const Request& request,
                                  const std::string& /*job*/) {
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t offset,
      Integer(request, {.name = "offset", .max = std::numeric_limits<int>::max()}));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t limit,
      Integer(request, {.name = "limit", .fallback = 100, .min = 1, .max = 1000}));
  MUSTER_ASSIGN_OR_RETURN(const bool details, Boolean(request, "details"));
  history::JobFilter filter{.platform = Text(request, "platform"),
                            .text = Text(request, "search"),
                            .offset = static_cast<int>(offset),
                            .limit = static_cast<int>(limit)};
  if (details) filter.limit = std::min(filter.limit, kMaxDetailedJobs);
  MUSTER_ASSIGN_OR_RETURN(filter.states, jobs::ParseStates(Texts(request, "state")));
  const auto notes = jobs::ReadNotes(context.service.home());
  if (!filter.text.empty()) filter.ids = TaggedWith(notes, filter.text);
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, history->ListJobs(filter));
  MUSTER_ASSIGN_OR_RETURN(const auto matching, history->CountJobs(filter));
  MUSTER_ASSIGN_OR_RETURN(const auto all, history->CountJobs());
  int total = 0;
  for (const auto& [state, count] : matching) total += count;
  json page = {{"total", total}, {"states", CountsToJson(all)}, {"jobs", json::array()}};
  for (const job::JobRecord& record : jobs) {
    const job::JobRecord job = context.feed.WithReachability(record);
    json summary = SummaryOf(context.service, job, jobs::NotesOf(notes, job.id));
    if (details) AddDetails(context, job, summary);
    page["jobs"].push_back(std::move(summary));
  }
  return JsonResponse(page);
}

absl::StatusOr<Response> GetJob(ApiContext& context, const Request& /*request*/,
                                const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  const auto notes = jobs::ReadNotes(context.service.home());
  MUSTER_ASSIGN_OR_RETURN(const json details,
                          DetailsOf(context.service, job, jobs::NotesOf(notes, job.id)));
  return JsonResponse(details);
}

absl::StatusOr<Response> GetFile(ApiContext& context, const Request& request,
                                 const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, SourceOf(context, id));
  json result = {{"text", text}, {"parameters", json::array()}, {"diff", nullptr}};
  for (const auto& [name, value] : jobs::ParametersIn(text)) {
    result["parameters"].push_back({{"name", name}, {"value", value}});
  }
  if (const std::string other = Text(request, "with"); !other.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string before, SourceOf(context, other));
    MUSTER_ASSIGN_OR_RETURN(result["diff"], DiffOf(before, text));
  }
  return JsonResponse(result);
}

absl::StatusOr<Response> GetEvents(ApiContext& context, const Request& request,
                                   const std::string& id) {
  MUSTER_RETURN_IF_ERROR(JobWithId(context, id).status());
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t after,
      Integer(request, {.name = "after", .max = std::numeric_limits<int64_t>::max()}));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t limit,
      Integer(request, {.name = "limit", .fallback = 200, .min = 1, .max = 1000}));
  MUSTER_ASSIGN_OR_RETURN(history::History * history, context.service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto events, history->Events(id, after, static_cast<int>(limit)));
  json list = json::array();
  for (const job::Event& event : events) list.push_back(jobs::EventToJson(event));
  return JsonResponse({{"events", std::move(list)}});
}

absl::StatusOr<Response> GetLogs(ApiContext& context, const Request& request,
                                 const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  MUSTER_ASSIGN_OR_RETURN(const supervise::LogPageQuery query, LogQueryOf(context, request, job));
  const std::string direction = Text(request, "direction");
  if (direction != "" && direction != "older" && direction != "newer") {
    return absl::InvalidArgumentError("direction must be older or newer");
  }
  std::optional<supervise::LogCursor> cursor;
  if (request.query.contains("cursor")) {
    MUSTER_ASSIGN_OR_RETURN(cursor, supervise::ParseLogCursor(Text(request, "cursor")));
  }
  FetchLogs(context, job, query.tasks);
  const supervise::LogPage page =
      direction == "newer"
          ? supervise::ReadNewerLines(query, cursor.value_or(supervise::LogCursor()))
          : supervise::ReadOlderLines(query, cursor);
  json lines = json::array();
  for (const supervise::LogLine& line : page.lines) lines.push_back(LineToJson(line));
  return JsonResponse(
      {{"lines", std::move(lines)},
       {"older", page.at_start ? json() : json(supervise::FormatLogCursor(page.older))},
       {"newer", supervise::FormatLogCursor(page.newer)}});
}

absl::StatusOr<Response> GetSamples(ApiContext& context, const Request& /*request*/,
                                    const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  MUSTER_ASSIGN_OR_RETURN(const auto samples, jobs::ReadSamples(context.service, job));
  return JsonResponse({{"tasks", SamplesOf(samples)}});
}

absl::StatusOr<Response> GetCheckpoints(ApiContext& context, const Request& /*request*/,
                                        const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  json list = json::array();
  if (job.model_dir.empty()) return JsonResponse({{"checkpoints", std::move(list)}});
  MUSTER_ASSIGN_OR_RETURN(const auto checkpoints, jobs::ListCheckpoints(job.model_dir));
  const auto metrics = context.metrics.Get(context.service, job);
  for (const jobs::CheckpointInfo& info : checkpoints) {
    json values = json::object();
    for (const auto& [name, value] : info.metrics) values[name] = value;
    if (metrics.ok()) AddValuesAt(**metrics, info.step, values);
    list.push_back({{"step", info.step},
                    {"time", info.written ? json(absl::FormatTime(absl::RFC3339_full, *info.written,
                                                                  absl::UTCTimeZone()))
                                          : json()},
                    {"bytes", info.bytes},
                    {"final", info.final},
                    {"best", info.best},
                    {"made_by", info.made_by.empty() ? json() : json(info.made_by)},
                    {"metrics", std::move(values)}});
  }
  return JsonResponse({{"checkpoints", std::move(list)}});
}

}  // namespace muster::dashboard
