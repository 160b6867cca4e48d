#include "launch/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "launch/log_format.h"

namespace muster {
namespace {

constexpr int64_t kMostPerDrain = 4 << 20;  // so that one loud task does not starve the others
constexpr absl::Duration kMarkInterval = absl::Milliseconds(100);
constexpr absl::Duration kRetryInterval = absl::Seconds(1);

// Numbers n for which <stem>.log.<n> exists: {lowest, highest}, {0, 0} when none does.
std::pair<uint32_t, uint32_t> RotatedRange(const std::string& directory, const std::string& stem) {
  const std::string prefix = absl::StrCat(stem, ".log.");
  std::pair<uint32_t, uint32_t> range{0, 0};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    uint32_t segment = 0;
    if (!absl::ConsumePrefix(&number, prefix) || !absl::SimpleAtoi(number, &segment)) continue;
    range.first = range.first == 0 ? segment : std::min(range.first, segment);
    range.second = std::max(range.second, segment);
  }
  return range;
}

}  // namespace

std::string LogStem(const TaskId& task) { return absl::StrCat(task.role, "-", task.index); }

std::string CurrentLogPath(const std::string& directory, const std::string& stem) {
  return JoinPath(directory, absl::StrCat(stem, ".log"));
}

std::string RotatedLogPath(const std::string& directory, const std::string& stem,
                           uint32_t segment) {
  return JoinPath(directory, absl::StrCat(stem, ".log.", segment));
}

std::string LogIndexPath(const std::string& directory, const std::string& stem) {
  return JoinPath(directory, absl::StrCat(stem, ".idx"));
}

uint32_t CurrentSegment(const std::string& directory, const std::string& stem) {
  return RotatedRange(directory, stem).second + 1;
}

uint32_t OldestSegment(const std::string& directory, const std::string& stem) {
  return std::max<uint32_t>(1, RotatedRange(directory, stem).first);
}

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Open(const std::string& directory,
                                                           const TaskId& task, Options options) {
  std::unique_ptr<LogWriter> writer(new LogWriter(directory, LogStem(task), options));
  writer->segment_ = CurrentSegment(directory, writer->stem_);
  MUSTER_RETURN_IF_ERROR(writer->OpenSegment());
  const std::string index = LogIndexPath(directory, writer->stem_);
  writer->index_ = UniqueFd(::open(index.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!writer->index_.valid()) return absl::ErrnoToStatus(errno, index);
  return writer;
}

absl::Status LogWriter::OpenSegment() {
  const std::string path = CurrentLogPath(directory_, stem_);
  // Not O_APPEND: splice refuses it. This process is the only writer.
  log_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!log_.valid()) return absl::ErrnoToStatus(errno, path);
  offset_ = ::lseek(log_.get(), 0, SEEK_END);
  return absl::OkStatus();
}

void LogWriter::RotateIfFull() {
  if (offset_ < options_.rotate_bytes) return;
  const std::string current = CurrentLogPath(directory_, stem_);
  const std::string rotated = RotatedLogPath(directory_, stem_, segment_);
  if (::rename(current.c_str(), rotated.c_str()) != 0) return;  // goes on in the same file
  ++segment_;
  last_mark_ = absl::InfinitePast();
  status_ = OpenSegment();
  DropOldSegments();
}

void LogWriter::DropOldSegments() {
  const auto [oldest, newest] = RotatedRange(directory_, stem_);
  for (uint32_t segment = oldest; segment + static_cast<uint32_t>(options_.keep) <= newest;
       ++segment) {
    ::unlink(RotatedLogPath(directory_, stem_, segment).c_str());
  }
}

void LogWriter::Mark(absl::Time now) {
  if (now - last_mark_ < kMarkInterval) return;
  last_mark_ = now;
  const IndexRecord record{.unix_micros = absl::ToUnixMicros(now),
                           .segment = segment_,
                           .attempt = attempt_,
                           .offset = static_cast<uint64_t>(offset_)};
  // Without a mark a line merely shows the time of the mark before.
  (void)!::write(index_.get(), &record, sizeof(record));
}

LogWriter::Outcome LogWriter::Drain(int pipe, absl::Time now) {
  if (!status_.ok()) {
    if (now < retry_at_) return Discard(pipe, now);
    if (!log_.valid()) status_ = OpenSegment();
  }
  int64_t moved = 0;
  while (moved < kMostPerDrain) {
    RotateIfFull();
    const auto room = static_cast<size_t>(options_.rotate_bytes - offset_);
    const ssize_t n = ::splice(pipe, nullptr, log_.get(), nullptr,
                               std::min<size_t>(std::max<size_t>(room, 1), 1 << 20),
                               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n == 0) return Outcome::kEnd;
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) break;
      status_ = absl::ErrnoToStatus(errno, CurrentLogPath(directory_, stem_));
      retry_at_ = now + kRetryInterval;
      return Discard(pipe, now);
    }
    Mark(now);  // the offset is still that of the first byte moved
    status_ = absl::OkStatus();
    offset_ += n;
    written_ += n;
    moved += n;
    last_output_ = now;
  }
  return moved > 0 ? Outcome::kMoved : Outcome::kEmpty;
}

LogWriter::Outcome LogWriter::Discard(int pipe, absl::Time now) {
  std::array<char, 65536> buffer;
  int64_t discarded = 0;
  while (discarded < kMostPerDrain) {
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n == 0) return Outcome::kEnd;
    if (n < 0) {
      if (errno == EINTR) continue;
      break;
    }
    discarded += n;
    lost_ += n;
    last_output_ = now;
  }
  return discarded > 0 ? Outcome::kMoved : Outcome::kEmpty;
}

}  // namespace muster
