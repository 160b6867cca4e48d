#include "history/job_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace muster::history {
namespace {

constexpr int64_t kMaxBytes = 64 << 20;
// Later times overflow the nanoseconds that the history stores.
constexpr int64_t kMaxMillis = std::numeric_limits<int64_t>::max() / 1'000'000;

absl::Status Mistake(const char* key, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(kJobFolderFile, ": ", key, " must be ", expected));
}

absl::Status ReadText(const nlohmann::json& json, const char* key, std::string& text) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return Mistake(key, "text");
  text = found->get<std::string>();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadInteger(const nlohmann::json& json, const char* key, int64_t max) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return Mistake(key, "a whole number");
  // A number beyond int64_t is read as negative, and so rejected.
  const int64_t number = found->get<int64_t>();
  if (number < 0 || number > max) return Mistake(key, absl::StrCat("from 0 to ", max));
  return number;
}

absl::Status ReadTime(const nlohmann::json& json, const char* key,
                      std::optional<absl::Time>& time) {
  if (!json.contains(key)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const int64_t millis, ReadInteger(json, key, kMaxMillis));
  time = absl::FromUnixMillis(millis);
  return absl::OkStatus();
}

void WriteTime(nlohmann::ordered_json& json, const char* key,
               const std::optional<absl::Time>& time) {
  if (time.has_value()) json[key] = absl::ToUnixMillis(*time);
}

absl::Status ReadVerdict(const nlohmann::json& json, job::JobRecord& job) {
  std::string state;
  MUSTER_RETURN_IF_ERROR(ReadText(json, "state", state));
  const std::optional<job::JobState> known = job::ParseJobState(state);
  if (!known.has_value() || !job::IsFinal(*known))
    return Mistake("state", "Succeeded, Failed or Stopped");
  job.state = *known;
  MUSTER_RETURN_IF_ERROR(ReadText(json, "reason", job.reason));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "failure", job.failure));
  MUSTER_RETURN_IF_ERROR(ReadTime(json, "started_ms", job.started));
  return ReadTime(json, "finished_ms", job.finished);
}

nlohmann::ordered_json TaskToJson(const job::TaskRecord& task, bool ended) {
  nlohmann::ordered_json json = {{"role", task.id.role}, {"index", task.id.index}};
  if (!ended) return json;
  json["state"] = std::string(job::ToString(task.state));
  json["attempt"] = task.attempt;
  json["restarts"] = task.restarts;
  json["host"] = task.host;
  json["address"] = task.address;
  json["command"] = task.command;
  json["reason"] = task.reason;
  if (task.exit_code.has_value()) json["exit_code"] = *task.exit_code;
  WriteTime(json, "started_ms", task.started);
  WriteTime(json, "finished_ms", task.finished);
  return json;
}

absl::StatusOr<job::TaskRecord> TaskFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return Mistake("tasks", "a list of objects");
  job::TaskRecord task;
  constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
  MUSTER_RETURN_IF_ERROR(ReadText(json, "role", task.id.role));
  MUSTER_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(json, "index", kMaxInt));
  task.id.index = static_cast<int>(index);
  if (!json.contains("state")) return task;
  std::string state;
  MUSTER_RETURN_IF_ERROR(ReadText(json, "state", state));
  task.state = job::ParseTaskState(state).value_or(job::TaskState::kLost);
  MUSTER_ASSIGN_OR_RETURN(const int64_t attempt, ReadInteger(json, "attempt", kMaxInt));
  MUSTER_ASSIGN_OR_RETURN(const int64_t restarts, ReadInteger(json, "restarts", kMaxInt));
  task.attempt = static_cast<int>(attempt);
  task.restarts = static_cast<int>(restarts);
  MUSTER_RETURN_IF_ERROR(ReadText(json, "host", task.host));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "address", task.address));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "command", task.command));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "reason", task.reason));
  if (json.contains("exit_code")) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t code, ReadInteger(json, "exit_code", 255));
    task.exit_code = static_cast<int>(code);
  }
  MUSTER_RETURN_IF_ERROR(ReadTime(json, "started_ms", task.started));
  MUSTER_RETURN_IF_ERROR(ReadTime(json, "finished_ms", task.finished));
  return task;
}

}  // namespace

std::string JobFolderToJson(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  nlohmann::ordered_json json = {
      {"id", job.id},
      {"name", job.name},
      {"platform", job.platform},
      {"created_ms", absl::ToUnixMillis(job.created)},
      {"directory", job.directory},
      {"model_dir", job.model_dir},
      {"resumed_from", job.resumed_from},
  };
  const bool ended = job::IsFinal(job.state);
  if (ended) {
    json["state"] = std::string(job::ToString(job.state));
    json["reason"] = job.reason;
    json["failure"] = job.failure;
    WriteTime(json, "started_ms", job.started);
    WriteTime(json, "finished_ms", job.finished);
  }
  json["tasks"] = nlohmann::ordered_json::array();
  for (const job::TaskRecord& task : tasks) json["tasks"].push_back(TaskToJson(task, ended));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<JobFolder> JobFolderFromJson(absl::string_view text) {
  const nlohmann::json json = base::ParseJson(text);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(kJobFolderFile, " is not a JSON object"));
  }
  JobFolder folder;
  job::JobRecord& job = folder.job;
  MUSTER_RETURN_IF_ERROR(ReadText(json, "id", job.id));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "name", job.name));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "platform", job.platform));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "directory", job.directory));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "model_dir", job.model_dir));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "resumed_from", job.resumed_from));
  MUSTER_ASSIGN_OR_RETURN(const int64_t created, ReadInteger(json, "created_ms", kMaxMillis));
  job.created = absl::FromUnixMillis(created);
  if (json.contains("state")) MUSTER_RETURN_IF_ERROR(ReadVerdict(json, job));
  const auto tasks = json.find("tasks");
  if (tasks == json.end() || !tasks->is_array()) return Mistake("tasks", "a list");
  for (const nlohmann::json& item : *tasks) {
    MUSTER_ASSIGN_OR_RETURN(job::TaskRecord task, TaskFromJson(item));
    folder.tasks.push_back(std::move(task));
  }
  job.tasks = static_cast<int>(folder.tasks.size());
  return folder;
}

std::vector<JobFolder> ReadJobFolders(const std::string& home) {
  std::vector<JobFolder> jobs;
  std::error_code error;
  std::filesystem::directory_iterator folder(base::JoinPath(home, "jobs"), error);
  for (; !error && folder != std::filesystem::directory_iterator(); folder.increment(error)) {
    absl::StatusOr<std::string> text =
        base::ReadFile(base::JoinPath(folder->path().string(), kJobFolderFile), kMaxBytes);
    if (!text.ok()) continue;
    absl::StatusOr<JobFolder> job = JobFolderFromJson(*text);
    // Skips copied and renamed folders, which would add a second job with the same id.
    if (!job.ok() || job->job.id != folder->path().filename().string()) continue;
    jobs.push_back(*std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobFolder& a, const JobFolder& b) {
    return std::tie(a.job.created, a.job.id) < std::tie(b.job.created, b.job.id);
  });
  return jobs;
}

}  // namespace muster::history
