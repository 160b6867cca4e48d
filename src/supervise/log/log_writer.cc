#include "supervise/log/log_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "supervise/log/log_format.h"

namespace muster::supervise {
namespace {

constexpr int64_t kMaxPerDrain = 4 << 20;  // so that a verbose task does not starve the others
constexpr int64_t kDenseMarks = 1000;      // beyond this many, index records get sparser
constexpr absl::Duration kMarkInterval = absl::Milliseconds(100);
constexpr absl::Duration kRetryInterval = absl::Seconds(1);

bool IsRotatedAway(const std::string& directory, const std::string& stem, uint32_t segment) {
  return ::access(RotatedLogPath(directory, stem, segment).c_str(), F_OK) == 0;
}

}  // namespace

std::string LogStem(const cluster::TaskId& task) {
  return absl::StrCat(task.role, "-", task.index);
}

std::string CurrentLogPath(const std::string& directory, const std::string& stem) {
  return base::JoinPath(directory, absl::StrCat(stem, ".log"));
}

std::string RotatedLogPath(const std::string& directory, const std::string& stem,
                           uint32_t segment) {
  return base::JoinPath(directory, absl::StrCat(stem, ".log.", segment));
}

std::string LogIndexPath(const std::string& directory, const std::string& stem) {
  return base::JoinPath(directory, absl::StrCat(stem, ".idx"));
}

uint32_t CurrentSegment(const std::string& directory, const std::string& stem) {
  // Every segment begins with an index record, so the last record belongs to the current segment,
  // or to an earlier one if nothing was written since. Listing the folder instead would be
  // quadratic in the number of tasks.
  IndexRecord last{.segment = 1};
  const base::UniqueFd index(::open(LogIndexPath(directory, stem).c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = index.valid() ? ::lseek(index.get(), 0, SEEK_END) : 0;
  const auto records = size / static_cast<off_t>(sizeof(last));
  if (records > 0) {
    (void)!::pread(index.get(), &last, sizeof(last),
                   (records - 1) * static_cast<off_t>(sizeof(last)));
  }
  uint32_t segment = std::max<uint32_t>(1, last.segment);
  while (IsRotatedAway(directory, stem, segment)) ++segment;
  return segment;
}

uint32_t OldestSegment(const std::string& directory, const std::string& stem) {
  uint32_t segment = CurrentSegment(directory, stem);
  while (segment > 1 && IsRotatedAway(directory, stem, segment - 1)) --segment;
  return segment;
}

absl::Status LogWriter::Truncate(const std::string& directory, const cluster::TaskId& task,
                                 uint32_t segment, int64_t offset) {
  const std::string stem = LogStem(task);
  const std::string log = CurrentLogPath(directory, stem);
  struct stat info {};
  if (CurrentSegment(directory, stem) != segment || ::stat(log.c_str(), &info) != 0 ||
      info.st_size <= offset) {
    return absl::OkStatus();
  }
  return ::truncate(log.c_str(), offset) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, log);
}

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Open(const std::string& directory,
                                                           const cluster::TaskId& task,
                                                           Options options) {
  std::unique_ptr<LogWriter> writer(new LogWriter(directory, LogStem(task), options));
  writer->segment_ = CurrentSegment(directory, writer->stem_);
  MUSTER_RETURN_IF_ERROR(writer->OpenSegment());
  const std::string index = LogIndexPath(directory, writer->stem_);
  writer->index_ =
      base::UniqueFd(::open(index.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!writer->index_.valid()) return absl::ErrnoToStatus(errno, index);
  return writer;
}

absl::Status LogWriter::OpenSegment() {
  const std::string path = CurrentLogPath(directory_, stem_);
  // No O_APPEND: splice rejects it. This process is the only writer.
  log_ = base::UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!log_.valid()) return absl::ErrnoToStatus(errno, path);
  offset_ = ::lseek(log_.get(), 0, SEEK_END);
  return absl::OkStatus();
}

void LogWriter::RotateIfFull() {
  if (offset_ < options_.rotate_bytes) return;
  const std::string current = CurrentLogPath(directory_, stem_);
  const std::string rotated = RotatedLogPath(directory_, stem_, segment_);
  if (::rename(current.c_str(), rotated.c_str()) != 0) return;  // continues in the same file
  ++segment_;
  last_mark_ = absl::InfinitePast();
  status_ = OpenSegment();
  DropOldSegments();
}

void LogWriter::DropOldSegments() {
  const auto keep = static_cast<uint32_t>(options_.keep);
  for (uint32_t n = segment_ - 1; n > keep; --n) {
    if (::unlink(RotatedLogPath(directory_, stem_, n - keep).c_str()) != 0) break;
  }
}

void LogWriter::Mark(absl::Time now) {
  if (now - last_mark_ < kMarkInterval) return;
  // The interval grows with the index, which limits a task that writes for a month to some hundred
  // thousand records.
  const int64_t marks =
      1 + ::lseek(index_.get(), 0, SEEK_END) / static_cast<off_t>(sizeof(IndexRecord));
  const absl::Duration interval = kMarkInterval * std::max<int64_t>(1, marks / kDenseMarks);
  if (now - last_mark_ < interval) return;
  last_mark_ = now;
  const IndexRecord record{.unix_micros = absl::ToUnixMicros(now),
                           .segment = segment_,
                           .attempt = attempt_,
                           .offset = static_cast<uint64_t>(offset_)};
  // If a record is missing, lines show the time of the previous one. A partial record would shift
  // all later ones, so it is removed.
  const ssize_t n = ::write(index_.get(), &record, sizeof(record));
  if (n == sizeof(record)) return;
  last_mark_ = absl::InfinitePast();
  const off_t size = ::lseek(index_.get(), 0, SEEK_END);
  if (n > 0) (void)!::ftruncate(index_.get(), size - n);
}

LogWriter::Outcome LogWriter::Drain(int pipe, absl::Time now) {
  if (!status_.ok()) {
    // Output is discarded between two attempts to write to a failing disk.
    if (now < retry_at_) return Discard(pipe, now);
    if (!log_.valid()) status_ = OpenSegment();
  }
  int64_t moved = 0;
  while (moved < kMaxPerDrain) {
    RotateIfFull();
    if (!log_.valid()) {
      retry_at_ = now + kRetryInterval;
      return Discard(pipe, now);
    }
    Mark(now);  // before the bytes, so that a reader of them finds their time
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
    status_ = absl::OkStatus();
    offset_ += n;
    written_ += n;
    moved += n;
    last_output_ = now;
  }
  return moved > 0 ? Outcome::kMoved : Outcome::kEmpty;
}

absl::Status LogWriter::Write(absl::string_view bytes, absl::Time time) {
  RotateIfFull();
  if (!log_.valid()) MUSTER_RETURN_IF_ERROR(OpenSegment());
  Mark(time);
  while (!bytes.empty()) {
    const ssize_t n = ::write(log_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::ErrnoToStatus(errno, CurrentLogPath(directory_, stem_));
    bytes.remove_prefix(static_cast<size_t>(n));
    offset_ += n;
    written_ += n;
  }
  last_output_ = time;
  return absl::OkStatus();
}

LogWriter::Outcome LogWriter::Discard(int pipe, absl::Time now) {
  std::array<char, 65536> buffer;
  int64_t discarded = 0;
  while (discarded < kMaxPerDrain) {
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

}  // namespace muster::supervise
