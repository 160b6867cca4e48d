#include "launch/log_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/terminal_text.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kLongestLine = 64 << 10;

// Of a line rewritten with \r only the last version that says something is shown.
std::string LastVersion(std::string line) {
  while (!line.empty() && line.back() == '\r') line.pop_back();
  const size_t at = line.rfind('\r');
  return at == std::string::npos ? line : line.substr(at + 1);
}

int64_t SizeOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : -1;
}

}  // namespace

LogReader::LogReader(std::string directory, TaskId task)
    : directory_(std::move(directory)), task_(std::move(task)), stem_(LogStem(task_)) {
  StartAt({OldestSegment(directory_, stem_), 0});
}

void LogReader::StartAt(Position position) {
  log_.Reset();
  read_ = line_start_ = position;
  buffer_.clear();
  begin_ = scanned_ = 0;
  index_cursor_ = 0;
}

// Opens the segment wherever rotation has put it by now.
bool LogReader::OpenSegment(uint32_t segment) {
  const std::string rotated = RotatedLogPath(directory_, stem_, segment);
  const std::string current = CurrentLogPath(directory_, stem_);
  // The current file is opened first and used only when it was not rotated away meanwhile.
  UniqueFd fd(::open(current.c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd moved(::open(rotated.c_str(), O_RDONLY | O_CLOEXEC));
  if (moved.valid()) {
    fd = std::move(moved);
  } else if (CurrentSegment(directory_, stem_) != segment) {
    return false;
  }
  log_ = std::move(fd);
  return log_.valid();
}

// True when the next segment exists; this one will then not grow any more.
bool LogReader::AdvanceSegment() {
  const uint32_t current = CurrentSegment(directory_, stem_);
  if (current <= read_.segment) return false;
  // Segments that were dropped before they were read are skipped.
  read_.segment = std::max(read_.segment + 1, OldestSegment(directory_, stem_));
  read_.offset = 0;
  log_.Reset();
  return true;
}

bool LogReader::ReadMore() {
  for (;;) {
    if (!log_.valid() && !OpenSegment(read_.segment)) {
      if (!AdvanceSegment()) return false;
      continue;
    }
    // Whether the segment is complete must be known before its end is seen.
    const bool complete = IsRotated();
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    const ssize_t n =
        ::pread(log_.get(), buffer_.data() + before, kReadBytes, static_cast<off_t>(read_.offset));
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) {
      if (before == 0) line_start_ = read_;
      read_.offset += static_cast<uint64_t>(n);
      return true;
    }
    if (!complete || !AdvanceSegment()) return false;
  }
}

// True when the segment being read will not grow any more.
bool LogReader::IsRotated() const {
  struct stat info {};
  if (::fstat(log_.get(), &info) == 0 && info.st_nlink == 0) return true;  // and dropped since
  return ::access(RotatedLogPath(directory_, stem_, read_.segment).c_str(), F_OK) == 0;
}

void LogReader::LoadIndex() {
  if (!index_fd_.valid()) {
    index_fd_ = UniqueFd(::open(LogIndexPath(directory_, stem_).c_str(), O_RDONLY | O_CLOEXEC));
    if (!index_fd_.valid()) return;
  }
  IndexRecord records[256];
  for (;;) {
    const ssize_t n = ::pread(index_fd_.get(), records, sizeof(records),
                              static_cast<off_t>(index_.size() * sizeof(IndexRecord)));
    if (n < static_cast<ssize_t>(sizeof(IndexRecord))) return;
    index_.insert(index_.end(), records, records + static_cast<size_t>(n) / sizeof(IndexRecord));
  }
}

// The mark in force at `position`. Positions asked for only move forward between Seeks.
IndexRecord LogReader::MarkAt(Position position) {
  const auto place = [](const IndexRecord& r) { return Position{r.segment, r.offset}; };
  if (index_.empty() || place(index_.back()) <= position) LoadIndex();
  while (index_cursor_ + 1 < index_.size() && place(index_[index_cursor_ + 1]) <= position) {
    ++index_cursor_;
  }
  return index_cursor_ < index_.size() ? index_[index_cursor_] : IndexRecord{};
}

LogLine LogReader::MakeLine(Position start, std::string text) {
  const IndexRecord mark = MarkAt(start);
  return {.task = task_,
          .attempt = static_cast<int>(mark.attempt),
          .time = absl::FromUnixMicros(mark.unix_micros),
          .text = LastVersion(std::move(text))};
}

std::optional<LogLine> LogReader::Next() {
  for (;;) {
    size_t end = buffer_.find('\n', scanned_);
    size_t skip = 1;
    if (end == std::string::npos || end - begin_ > kLongestLine) {
      if (end == std::string::npos && buffer_.size() - begin_ <= kLongestLine) {
        scanned_ = buffer_.size();
        if (!ReadMore()) return std::nullopt;
        continue;
      }
      end = begin_ + kLongestLine;
      skip = 0;
    }
    LogLine line = MakeLine(line_start_, buffer_.substr(begin_, end - begin_));
    line_start_.offset += end + skip - begin_;
    begin_ = scanned_ = end + skip;
    return line;
  }
}

std::optional<LogLine> LogReader::TakePartial() {
  if (begin_ == buffer_.size()) return std::nullopt;
  LogLine line = MakeLine(line_start_, buffer_.substr(begin_));
  begin_ = scanned_ = buffer_.size();
  line_start_ = read_;
  if (line.text.empty()) return std::nullopt;
  return line;
}

void LogReader::SeekTail(int count) {
  const uint32_t oldest = OldestSegment(directory_, stem_);
  uint32_t segment = CurrentSegment(directory_, stem_);
  int64_t wanted = int64_t{count} + 1;  // line ends to pass, the last line's own included
  bool at_end = true;
  for (;; --segment) {
    UniqueFd fd;
    if (OpenSegment(segment)) fd = std::move(log_);
    struct stat info {};
    int64_t position = fd.valid() && ::fstat(fd.get(), &info) == 0 ? info.st_size : 0;
    std::string block;
    while (position > 0) {
      const int64_t length = std::min<int64_t>(position, kReadBytes);
      block.resize(static_cast<size_t>(length));
      if (::pread(fd.get(), block.data(), block.size(), position - length) != length) break;
      position -= length;
      if (at_end && block.back() != '\n') --wanted;  // the last line is not finished
      at_end = false;
      for (size_t i = block.size(); i-- > 0;) {
        if (block[i] == '\n' && --wanted == 0) {
          StartAt({segment, static_cast<uint64_t>(position) + i + 1});
          return;
        }
      }
    }
    if (segment <= oldest) break;
  }
  StartAt({oldest, 0});
}

void LogReader::SeekTime(absl::Time since) {
  LoadIndex();
  const int64_t micros = absl::ToUnixMicros(since);
  const auto first =
      std::partition_point(index_.begin(), index_.end(),
                           [micros](const IndexRecord& r) { return r.unix_micros < micros; });
  if (first == index_.end()) {
    const uint32_t segment = CurrentSegment(directory_, stem_);
    const int64_t size = SizeOf(CurrentLogPath(directory_, stem_));
    StartAt({segment, static_cast<uint64_t>(std::max<int64_t>(size, 0))});
    return;
  }
  const Position start{std::max(first->segment, OldestSegment(directory_, stem_)), first->offset};
  StartAt(start);
  // A mark may stand in the middle of a line: then begin with the next one.
  char before = '\n';
  if (start.offset > 0 && OpenSegment(start.segment)) {
    (void)!::pread(log_.get(), &before, 1, static_cast<off_t>(start.offset - 1));
  }
  if (before != '\n') Next();
}

MergedLogReader::MergedLogReader(const std::string& directory, const std::vector<TaskId>& tasks)
    : directory_(directory), inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  ::inotify_add_watch(inotify_.get(), directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_FROM);
  for (const TaskId& task : tasks) AddTask(task);
}

void MergedLogReader::AddTask(const TaskId& task) {
  const bool known = std::any_of(sources_.begin(), sources_.end(),
                                 [&](const Source& s) { return s.reader->task() == task; });
  if (!known) sources_.push_back({std::make_unique<LogReader>(directory_, task), std::nullopt});
}

void MergedLogReader::Acknowledge() {
  char events[4096];
  while (::read(inotify_.get(), events, sizeof(events)) > 0) {
  }
}

void MergedLogReader::SeekTail(int count) {
  for (Source& source : sources_) source.reader->SeekTail(count);
  std::deque<LogLine> last;
  while (auto line = Next()) {
    last.push_back(*std::move(line));
    if (last.size() > static_cast<size_t>(count)) last.pop_front();
  }
  ready_ = std::move(last);
}

void MergedLogReader::SeekTime(absl::Time since) {
  for (Source& source : sources_) source.reader->SeekTime(since);
}

std::optional<LogLine> MergedLogReader::Next() {
  if (!ready_.empty()) {
    LogLine line = std::move(ready_.front());
    ready_.pop_front();
    return line;
  }
  Source* oldest = nullptr;
  for (Source& source : sources_) {
    if (!source.head.has_value()) source.head = source.reader->Next();
    if (!source.head.has_value()) continue;
    if (oldest == nullptr || source.head->time < oldest->head->time) oldest = &source;
  }
  if (oldest == nullptr) return std::nullopt;
  return std::exchange(oldest->head, std::nullopt);
}

std::vector<LogLine> MergedLogReader::TakePartials() {
  std::vector<LogLine> lines;
  for (Source& source : sources_) {
    if (auto line = source.reader->TakePartial()) lines.push_back(*std::move(line));
  }
  return lines;
}

std::vector<std::string> LastLines(const std::string& directory, const TaskId& task, int count) {
  constexpr size_t kLongestShown = 2000;
  LogReader reader(directory, task);
  reader.SeekTail(count);
  std::vector<std::string> lines;
  while (auto line = reader.Next()) lines.push_back(Printable(line->text.substr(0, kLongestShown)));
  if (auto line = reader.TakePartial())
    lines.push_back(Printable(line->text.substr(0, kLongestShown)));
  if (lines.size() > static_cast<size_t>(count)) lines.erase(lines.begin(), lines.end() - count);
  return lines;
}

}  // namespace muster
