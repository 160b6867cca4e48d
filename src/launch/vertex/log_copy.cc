#include "launch/vertex/log_copy.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr char kStateFile[] = "vertex.copy";
constexpr int64_t kMaxState = 4 << 20;
constexpr char kServiceMark[] = "[Vertex AI] ";

}  // namespace

LogCopy::LogCopy(std::string directory, Pools pools, LogWriter::Options options)
    : directory_(std::move(directory)), pools_(std::move(pools)), options_(options) {}

// What is damaged is copied again, after what is there.
void LogCopy::Load() {
  const auto text = ReadFile(JoinPath(directory_, kStateFile), kMaxState);
  const Json json = text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  if (!json.is_object()) return;
  try {
    LogCursor cursor{json.at("timestamp").get<std::string>(),
                     json.at("insert_id").get<std::string>()};
    for (const auto& [task, mark] : json.at("tasks").items()) {
      marks_[task] = {mark.at("segment").get<uint32_t>(), mark.at("offset").get<int64_t>()};
    }
    cursor_ = std::move(cursor);
  } catch (const Json::exception&) {
    marks_.clear();
  }
}

absl::Status LogCopy::CutBack() const {
  for (const auto& [name, mark] : marks_) {
    const auto task = TaskId::Parse(name);
    if (!task.ok()) continue;
    MUSTER_RETURN_IF_ERROR(LogWriter::CutBack(directory_, *task, mark.segment, mark.offset));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LogCopy>> LogCopy::Open(const std::string& directory,
                                                       const Pools& pools,
                                                       LogWriter::Options options) {
  std::unique_ptr<LogCopy> copy(new LogCopy(directory, pools, options));
  copy->Load();
  // What was written after the last save will come again; what was never saved, too.
  for (const auto& pool : pools) {
    for (const TaskId& task : pool) copy->marks_.try_emplace(task.ToString());
  }
  MUSTER_RETURN_IF_ERROR(copy->CutBack());
  return copy;
}

absl::StatusOr<LogWriter*> LogCopy::WriterFor(const TaskId& task) {
  std::unique_ptr<LogWriter>& writer = writers_[task];
  if (writer == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(writer, LogWriter::Open(directory_, task, options_));
    writer->BeginAttempt(0);
  }
  return writer.get();
}

absl::Status LogCopy::Take(const LogEntry& entry) {
  const LogCursor here{entry.timestamp, entry.insert_id};
  if (here == cursor_) return absl::OkStatus();
  const auto known = FindTask(pools_, entry.task);
  MUSTER_ASSIGN_OR_RETURN(LogWriter * writer, WriterFor(known.value_or(pools_.front().front())));
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, entry.timestamp, &time, nullptr)) time = absl::Now();
  const std::string start = absl::StrCat(entry.severity.empty() ? "DEFAULT" : entry.severity,
                                         " :: ", known ? "" : kServiceMark);
  std::string lines;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(entry.message, "\n"), '\n')) {
    absl::StrAppend(&lines, start, line, "\n");
  }
  MUSTER_RETURN_IF_ERROR(writer->Write(lines, time));
  cursor_ = here;
  return absl::OkStatus();
}

absl::Status LogCopy::Save() {
  for (const auto& [task, writer] : writers_) {
    marks_[task.ToString()] = {writer->segment(), writer->offset()};
  }
  Json tasks = Json::object();
  for (const auto& [task, mark] : marks_) {
    tasks[task] = {{"segment", mark.segment}, {"offset", mark.offset}};
  }
  const Json json = {
      {"timestamp", cursor_.timestamp}, {"insert_id", cursor_.insert_id}, {"tasks", tasks}};
  return ReplaceFile(JoinPath(directory_, kStateFile), json.dump());
}

}  // namespace muster::vertex
