#include "platform/vertex/log_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr char kStateFile[] = "vertex.copy";
// Contains an 8-byte fingerprint of each entry written. The state file holds the number of valid
// ones.
constexpr char kTakenFile[] = "vertex.taken";
constexpr int64_t kMaxState = 4 << 20;
constexpr int64_t kMaxTaken = 1 << 30;
constexpr char kServiceMark[] = "[Vertex AI] ";

// Entries of the same time differ in their insert id.
uint64_t FingerprintOf(const LogEntry& entry) {
  return base::Fingerprint(absl::StrCat(entry.timestamp, " ", entry.insert_id));
}

absl::string_view BytesOf(const std::vector<uint64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(uint64_t)};
}

}  // namespace

LogCopy::LogCopy(std::string directory, Pools pools, supervise::LogWriter::Options options)
    : directory_(std::move(directory)), pools_(std::move(pools)), options_(options) {}

// A damaged state is ignored: the output is copied again.
void LogCopy::Load() {
  const auto text = base::ReadFile(base::JoinPath(directory_, kStateFile), kMaxState);
  const Json json = text.ok() ? base::ParseJson(*text) : Json();
  if (!json.is_object()) return;
  try {
    const auto count = json.at("taken").get<size_t>();
    std::string bytes =
        base::ReadFile(base::JoinPath(directory_, kTakenFile), kMaxTaken).value_or("");
    if (bytes.size() / sizeof(uint64_t) < count) return;
    std::vector<uint64_t> numbers(count);
    std::memcpy(numbers.data(), bytes.data(), count * sizeof(uint64_t));
    for (const auto& [task, mark] : json.at("tasks").items()) {
      marks_[task] = {mark.at("segment").get<uint32_t>(), mark.at("offset").get<int64_t>()};
    }
    if (count > 0) latest_ = absl::FromUnixMicros(json.at("latest_us").get<int64_t>());
    taken_.insert(numbers.begin(), numbers.end());
  } catch (const Json::exception&) {
    marks_.clear();
  }
}

absl::Status LogCopy::TruncateToSaved() const {
  for (const auto& [name, mark] : marks_) {
    const auto task = cluster::TaskId::Parse(name);
    if (!task.ok()) continue;
    MUSTER_RETURN_IF_ERROR(
        supervise::LogWriter::Truncate(directory_, *task, mark.segment, mark.offset));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LogCopy>> LogCopy::Open(const std::string& directory,
                                                       const Pools& pools,
                                                       supervise::LogWriter::Options options) {
  std::unique_ptr<LogCopy> copy(new LogCopy(directory, pools, options));
  copy->Load();
  // Entries written after the last save will be received again, so the logs are cut back to it. A
  // log that was never saved is cut back to its start.
  for (const auto& pool : pools) {
    for (const cluster::TaskId& task : pool) copy->marks_.try_emplace(task.ToString());
  }
  MUSTER_RETURN_IF_ERROR(copy->TruncateToSaved());
  return copy;
}

absl::StatusOr<supervise::LogWriter*> LogCopy::WriterFor(const cluster::TaskId& task) {
  std::unique_ptr<supervise::LogWriter>& writer = writers_[task];
  if (writer == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(writer, supervise::LogWriter::Open(directory_, task, options_));
    writer->BeginAttempt(0);
  }
  return writer.get();
}

std::vector<std::string> LinesOf(const LogEntry& entry, absl::string_view mark) {
  std::vector<std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(entry.message, "\n"), '\n')) {
    lines.push_back(
        absl::StrCat(entry.severity.empty() ? "DEFAULT" : entry.severity, " :: ", mark, line));
  }
  return lines;
}

absl::Status LogCopy::Take(const LogEntry& entry) {
  const uint64_t fingerprint = FingerprintOf(entry);
  if (taken_.contains(fingerprint)) return absl::OkStatus();
  const auto known = FindTask(pools_, entry.task);
  MUSTER_ASSIGN_OR_RETURN(supervise::LogWriter * writer,
                          WriterFor(known.value_or(pools_.front().front())));
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, entry.timestamp, &time, nullptr)) time = absl::Now();
  const std::vector<std::string> lines = LinesOf(entry, known ? "" : kServiceMark);
  MUSTER_RETURN_IF_ERROR(writer->Write(absl::StrCat(absl::StrJoin(lines, "\n"), "\n"), time));
  taken_.insert(fingerprint);
  unsaved_.push_back(fingerprint);
  latest_ = std::max(latest_.value_or(time), time);
  return absl::OkStatus();
}

absl::Status LogCopy::SaveTaken() {
  const std::string path = base::JoinPath(directory_, kTakenFile);
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::DiskError(errno, path);
  const auto begin = static_cast<off_t>((taken_.size() - unsaved_.size()) * sizeof(uint64_t));
  if (::lseek(fd.get(), begin, SEEK_SET) != begin) return base::DiskError(errno, path);
  MUSTER_RETURN_IF_ERROR(base::WriteAll(fd.get(), BytesOf(unsaved_)));
  unsaved_.clear();
  return absl::OkStatus();
}

absl::Status LogCopy::Save() {
  // Fingerprints first: the state file, replaced atomically, makes them valid.
  MUSTER_RETURN_IF_ERROR(SaveTaken());
  for (const auto& [task, writer] : writers_) {
    marks_[task.ToString()] = {writer->segment(), writer->offset()};
  }
  Json tasks = Json::object();
  for (const auto& [task, mark] : marks_) {
    tasks[task] = {{"segment", mark.segment}, {"offset", mark.offset}};
  }
  const Json json = {{"taken", taken_.size()},
                     {"latest_us", absl::ToUnixMicros(latest_.value_or(absl::UnixEpoch()))},
                     {"tasks", tasks}};
  return base::ReplaceFile(base::JoinPath(directory_, kStateFile), json.dump());
}

}  // namespace muster::vertex
