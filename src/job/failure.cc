#include "job/failure.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace muster::job {
namespace {

using Json = nlohmann::json;

Json FirstToJson(const TaskFailure& first) {
  Json json = {{"task", first.task.ToString()},
               {"attempt", first.attempt},
               {"time", absl::FormatTime(absl::RFC3339_full, first.time, absl::UTCTimeZone())},
               {"cause", first.cause},
               {"advice", first.advice},
               {"last_lines", first.last_lines}};
  if (first.exit_code) json["exit_code"] = *first.exit_code;
  return json;
}

// Throws Json::exception if a member is absent or of another type; FailureFromJson() catches it.
absl::StatusOr<TaskFailure> FirstFromJson(const Json& json) {
  absl::StatusOr<cluster::TaskId> task = cluster::TaskId::Parse(json.at("task").get<std::string>());
  if (!task.ok()) return task.status();
  TaskFailure first;
  first.task = *std::move(task);
  first.attempt = json.at("attempt").get<int>();
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, json.at("time").get<std::string>(), &first.time,
                       &error)) {
    return absl::InvalidArgumentError(absl::StrCat("invalid time: ", error));
  }
  if (json.contains("exit_code")) first.exit_code = json.at("exit_code").get<int>();
  first.cause = json.at("cause").get<std::string>();
  first.advice = json.at("advice").get<std::string>();
  first.last_lines = json.at("last_lines").get<std::vector<std::string>>();
  return first;
}

absl::StatusOr<FailureReport> ReportFromJson(const Json& json) {
  FailureReport report;
  report.summary = json.at("summary").get<std::string>();
  report.victims = json.at("victims").get<std::vector<std::string>>();
  if (json.contains("not_restarted")) {
    report.not_restarted = json.at("not_restarted").get<std::string>();
  }
  if (json.contains("first")) {
    absl::StatusOr<TaskFailure> first = FirstFromJson(json.at("first"));
    if (!first.ok()) return first.status();
    report.first = *std::move(first);
  }
  return report;
}

}  // namespace

std::string FailureToJson(const FailureReport& report) {
  Json json = {{"summary", report.summary}, {"victims", report.victims}};
  if (report.first) json["first"] = FirstToJson(*report.first);
  if (!report.not_restarted.empty()) json["not_restarted"] = report.not_restarted;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<FailureReport> FailureFromJson(absl::string_view json) {
  const Json parsed = base::ParseJson(json);
  try {
    return ReportFromJson(parsed);
  } catch (const Json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("not a failure report: ", e.what()));
  }
}

}  // namespace muster::job
