#include "history/job_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

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
  // A number beyond int64_t reads as negative.
  const int64_t number = found->get<int64_t>();
  if (number < 0 || number > max) return Mistake(key, absl::StrCat("from 0 to ", max));
  return number;
}

}  // namespace

std::string JobFolderRecordToJson(const JobRecord& job) {
  const nlohmann::ordered_json json = {
      {"id", job.id},
      {"name", job.name},
      {"platform", job.platform},
      {"created_ms", absl::ToUnixMillis(job.created)},
      {"directory", job.directory},
      {"model_dir", job.model_dir},
      {"resumed_from", job.resumed_from},
      {"tasks", job.tasks},
  };
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<JobRecord> JobFolderRecordFromJson(absl::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(kJobFolderFile, " is not a JSON object"));
  }
  JobRecord job;
  MUSTER_RETURN_IF_ERROR(ReadText(json, "id", job.id));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "name", job.name));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "platform", job.platform));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "directory", job.directory));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "model_dir", job.model_dir));
  MUSTER_RETURN_IF_ERROR(ReadText(json, "resumed_from", job.resumed_from));
  // Beyond this a time no longer fits into the nanoseconds that the history counts in.
  constexpr int64_t kMaxMillis = std::numeric_limits<int64_t>::max() / 1'000'000;
  MUSTER_ASSIGN_OR_RETURN(const int64_t created, ReadInteger(json, "created_ms", kMaxMillis));
  MUSTER_ASSIGN_OR_RETURN(const int64_t tasks,
                          ReadInteger(json, "tasks", std::numeric_limits<int>::max()));
  job.created = absl::FromUnixMillis(created);
  job.tasks = static_cast<int>(tasks);
  return job;
}

std::vector<JobRecord> ReadJobFolders(const std::string& home) {
  std::vector<JobRecord> jobs;
  std::error_code error;
  std::filesystem::directory_iterator folder(JoinPath(home, "jobs"), error);
  for (; !error && folder != std::filesystem::directory_iterator(); folder.increment(error)) {
    absl::StatusOr<std::string> text =
        ReadFile(JoinPath(folder->path().string(), kJobFolderFile), kMaxBytes);
    if (!text.ok()) continue;
    absl::StatusOr<JobRecord> job = JobFolderRecordFromJson(*text);
    // A folder that was copied or renamed must not bring a second job of the same id.
    if (!job.ok() || job->id != folder->path().filename().string()) continue;
    jobs.push_back(*std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobRecord& a, const JobRecord& b) {
    return std::tie(a.created, a.id) < std::tie(b.created, b.id);
  });
  return jobs;
}

}  // namespace muster
