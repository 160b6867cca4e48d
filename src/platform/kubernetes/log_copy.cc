#include "platform/kubernetes/log_copy.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"
#include "supervise/log/log_format.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxState = 64 << 10;
constexpr size_t kMaxLineBytes = 1 << 20;  // a longer line is written in pieces
constexpr absl::Duration kSaveInterval = absl::Seconds(1);

}  // namespace

LogCopy::State LogCopy::Load(const std::string& path) {
  State state;
  const auto text = base::ReadFile(path, kMaxState);
  const Json json = text.ok() ? base::ParseJson(*text) : Json();
  if (!json.is_object()) return state;
  try {
    state.source = {json.at("pod").get<std::string>(), json.at("restart").get<int>()};
    state.time = absl::FromUnixNanos(json.at("time_ns").get<int64_t>());
    state.lines = json.at("lines").get<int64_t>();
    state.complete = json.at("complete").get<bool>();
    state.segment = json.at("segment").get<uint32_t>();
    state.offset = json.at("offset").get<int64_t>();
  } catch (const Json::exception&) {
    return State();  // damaged: the pod's output is copied again, after the existing lines
  }
  return state;
}

absl::Status LogCopy::Save() {
  state_.segment = writer_->segment();
  state_.offset = writer_->offset();
  saved_ = absl::Now();
  const Json json = {
      {"pod", state_.source.pod},
      {"restart", state_.source.restart},
      {"time_ns", state_.time == absl::InfinitePast() ? 0 : absl::ToUnixNanos(state_.time)},
      {"lines", state_.lines},
      {"complete", state_.complete},
      {"segment", state_.segment},
      {"offset", state_.offset}};
  return base::ReplaceFile(path_, json.dump());
}

absl::StatusOr<std::unique_ptr<LogCopy>> LogCopy::Open(const std::string& directory,
                                                       const cluster::TaskId& task,
                                                       supervise::LogWriter::Options options) {
  const std::string stem = supervise::LogStem(task);
  const std::string path = base::JoinPath(directory, absl::StrCat(stem, ".copy"));
  State state = Load(path);
  // Bytes written after the last save will be received again.
  if (!state.source.pod.empty()) {
    MUSTER_RETURN_IF_ERROR(
        supervise::LogWriter::Truncate(directory, task, state.segment, state.offset));
  }
  MUSTER_ASSIGN_OR_RETURN(auto writer, supervise::LogWriter::Open(directory, task, options));
  return std::unique_ptr<LogCopy>(new LogCopy(path, std::move(state), std::move(writer)));
}

void LogCopy::Begin(const LogSource& source, int attempt) {
  if (state_.source != source) state_ = {.source = source};
  writer_->BeginAttempt(attempt);
  partial_line_.clear();
  // The API server resumes at a whole second, so lines at skip_until_ and before are sent again.
  skip_until_ = state_.time;
  to_skip_ = state_.lines;
}

absl::Time LogCopy::since() const { return state_.time; }

absl::Status LogCopy::Take(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == absl::string_view::npos) {
      partial_line_.append(bytes.data(), bytes.size());
      if (partial_line_.size() <= kMaxLineBytes) break;
      bytes = "";
    } else {
      partial_line_.append(bytes.data(), end + 1);
      bytes.remove_prefix(end + 1);
    }
    MUSTER_RETURN_IF_ERROR(TakeLine(partial_line_));
    partial_line_.clear();
  }
  return absl::Now() - saved_ > kSaveInterval ? Save() : absl::OkStatus();
}

// Format: "2026-05-01T12:00:00.123456789Z text".
absl::Status LogCopy::TakeLine(absl::string_view line) {
  const size_t space = line.find(' ');
  absl::Time time;
  if (space == absl::string_view::npos ||
      !absl::ParseTime(absl::RFC3339_full, line.substr(0, space), &time, nullptr)) {
    // The rest of an overlong line, or a message of the server itself: written unchanged.
    return writer_->Write(line, state_.time == absl::InfinitePast() ? absl::Now() : state_.time);
  }
  line.remove_prefix(space + 1);
  if (time < skip_until_) return absl::OkStatus();
  if (time == skip_until_ && to_skip_ > 0) {
    --to_skip_;
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(writer_->Write(line, time));
  state_.lines = time == state_.time ? state_.lines + 1 : 1;
  state_.time = time;
  return absl::OkStatus();
}

absl::Status LogCopy::End(bool complete) {
  // An unterminated last line is complete only if nothing can follow it.
  if (complete && !partial_line_.empty()) MUSTER_RETURN_IF_ERROR(TakeLine(partial_line_));
  partial_line_.clear();
  state_.complete = complete;
  return Save();
}

}  // namespace muster::kubernetes
