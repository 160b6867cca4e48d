#include "supervise/log/log_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text/terminal_text.h"

namespace muster::supervise {
namespace {

constexpr int64_t kReadBytes = 256 << 10;
constexpr size_t kMaxLineBytes = 64 << 10;

// Returns the last version of a line that was rewritten with \r.
std::string LastVersion(std::string line) {
  while (!line.empty() && line.back() == '\r') line.pop_back();
  const size_t at = line.rfind('\r');
  return at == std::string::npos ? line : line.substr(at + 1);
}

int64_t SizeOf(const base::UniqueFd& fd) {
  struct stat info {};
  return fd.valid() && ::fstat(fd.get(), &info) == 0 ? info.st_size : 0;
}

}  // namespace

LogReader::LogReader(std::string directory, cluster::TaskId task)
    : directory_(std::move(directory)), task_(std::move(task)), stem_(LogStem(task_)) {
  StartAt({OldestSegment(directory_, stem_), 0});
}

void LogReader::StartAt(Position position) {
  log_.Reset();
  read_ = position;
  buffer_.clear();
  borders_.clear();
  begin_ = scanned_ = 0;
  index_cursor_ = 0;
}

// Opens the segment under its rotated or its current name.
LogReader::Found LogReader::OpenSegment(uint32_t segment) {
  const std::string rotated = RotatedLogPath(directory_, stem_, segment);
  const std::string current = CurrentLogPath(directory_, stem_);
  const auto open = [](const std::string& path) {
    return base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  log_ = open(rotated);
  if (log_.valid()) return Found::kOpen;
  // The check follows the open: if this segment is still the current one, it was so at the open.
  base::UniqueFd fd = open(current);
  const bool is_current = CurrentSegment(directory_, stem_) <= segment;
  log_ = is_current ? std::move(fd) : open(rotated);
  if (log_.valid()) return Found::kOpen;
  return is_current ? Found::kNotYet : Found::kGone;
}

// Moves to the next segment that exists. Returns false if there is none yet.
bool LogReader::AdvanceSegment() {
  const uint32_t current = CurrentSegment(directory_, stem_);
  if (current <= read_.segment) return false;
  // Segments deleted before they were read are skipped. The line end separates the bytes before
  // such a gap from those after it.
  const uint32_t next = std::max(read_.segment + 1, OldestSegment(directory_, stem_));
  const bool gap = !log_.valid() || next > read_.segment + 1;
  if (gap && begin_ < buffer_.size()) buffer_.push_back('\n');
  read_ = {next, 0};
  log_.Reset();
  return true;
}

bool LogReader::ReadMore() {
  for (;;) {
    if (!log_.valid()) {
      const Found found = OpenSegment(read_.segment);
      if (found == Found::kNotYet || (found == Found::kGone && !AdvanceSegment())) return false;
      continue;
    }
    // The check must precede the read: end of file is final only if the segment was rotated before.
    const bool complete = IsRotated();
    DropReturned();
    const size_t before = buffer_.size();
    const int64_t left = SizeOf(log_) - static_cast<int64_t>(read_.offset);
    const auto wanted = static_cast<size_t>(std::clamp<int64_t>(left, 0, kReadBytes));
    buffer_.resize(before + wanted);
    const ssize_t n =
        ::pread(log_.get(), buffer_.data() + before, wanted, static_cast<off_t>(read_.offset));
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) {
      if (borders_.empty() || borders_.back().position.segment != read_.segment) {
        borders_.push_back({before, read_});
      }
      read_.offset += static_cast<uint64_t>(n);
      index_is_old_ = true;
      return true;
    }
    if (!complete || !AdvanceSegment()) return false;
  }
}

void LogReader::DropReturned() {
  if (begin_ == buffer_.size()) {
    borders_.clear();
  } else {
    // A border at the new start of buffer_ replaces those of the erased bytes.
    const Position position = PositionOf(begin_);
    std::erase_if(borders_, [this](const Border& border) { return border.at <= begin_; });
    for (Border& border : borders_) border.at -= begin_;
    borders_.insert(borders_.begin(), {0, position});
  }
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
}

LogReader::Position LogReader::PositionOf(size_t index) const {
  const auto border = std::find_if(borders_.rbegin(), borders_.rend(),
                                   [index](const Border& b) { return b.at <= index; });
  return {border->position.segment, border->position.offset + index - border->at};
}

// Returns true if the segment being read no longer grows.
bool LogReader::IsRotated() const {
  struct stat info {};
  if (::fstat(log_.get(), &info) == 0 && info.st_nlink == 0) return true;  // rotated and deleted
  return ::access(RotatedLogPath(directory_, stem_, read_.segment).c_str(), F_OK) == 0;
}

void LogReader::LoadIndex() {
  if (!index_fd_.valid()) {
    index_fd_ =
        base::UniqueFd(::open(LogIndexPath(directory_, stem_).c_str(), O_RDONLY | O_CLOEXEC));
    if (!index_fd_.valid()) return;
  }
  IndexRecord records[256];
  for (;;) {
    const ssize_t n = ::pread(index_fd_.get(), records, sizeof(records),
                              static_cast<off_t>(index_.size() * sizeof(IndexRecord)));
    // A partial record at the end is read again by the next call.
    if (n < static_cast<ssize_t>(sizeof(IndexRecord))) return;
    index_.insert(index_.end(), records, records + static_cast<size_t>(n) / sizeof(IndexRecord));
  }
}

// Returns the record in force at `position`. REQUIRES: positions do not decrease between Seeks,
// because index_cursor_ moves forward only.
IndexRecord LogReader::MarkAt(Position position) {
  const auto place = [](const IndexRecord& r) { return Position{r.segment, r.offset}; };
  if (index_is_old_) LoadIndex();
  index_is_old_ = false;
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

std::optional<LogPiece> LogReader::NextPiece() {
  if (begin_ == buffer_.size() && !ReadMore()) return std::nullopt;
  const Position start = PositionOf(begin_);
  const IndexRecord mark = MarkAt(start);
  // A piece ends at a segment border and at an index record, so that it has one attempt and time.
  size_t end = std::min(buffer_.size(), begin_ + kMaxLineBytes);
  for (const Border& border : borders_) {
    if (border.at > begin_) end = std::min(end, border.at);
  }
  if (index_cursor_ + 1 < index_.size()) {
    const IndexRecord& next = index_[index_cursor_ + 1];
    if (next.segment == start.segment && next.offset > start.offset) {
      end = std::min(end, begin_ + static_cast<size_t>(next.offset - start.offset));
    }
  }
  LogPiece piece{.attempt = static_cast<int>(mark.attempt),
                 .time = absl::FromUnixMicros(mark.unix_micros),
                 .bytes = buffer_.substr(begin_, end - begin_),
                 .next = {start.segment, start.offset + end - begin_}};
  begin_ = scanned_ = end;
  return piece;
}

std::optional<LogLine> LogReader::Next() {
  for (;;) {
    size_t end = buffer_.find('\n', scanned_);
    size_t skip = 1;
    if (end == std::string::npos || end - begin_ > kMaxLineBytes) {
      if (end == std::string::npos && buffer_.size() - begin_ <= kMaxLineBytes) {
        scanned_ = buffer_.size();
        if (!ReadMore()) return std::nullopt;
        continue;
      }
      end = begin_ + kMaxLineBytes;
      skip = 0;
    }
    LogLine line = MakeLine(PositionOf(begin_), buffer_.substr(begin_, end - begin_));
    begin_ = scanned_ = end + skip;
    return line;
  }
}

std::optional<LogLine> LogReader::TakePartial() {
  if (begin_ == buffer_.size()) return std::nullopt;
  LogLine line = MakeLine(PositionOf(begin_), buffer_.substr(begin_));
  begin_ = scanned_ = buffer_.size();
  if (line.text.empty()) return std::nullopt;
  return line;
}

LogPosition LogReader::newest() const {
  for (;;) {
    const uint32_t segment = CurrentSegment(directory_, stem_);
    const base::UniqueFd fd(
        ::open(CurrentLogPath(directory_, stem_).c_str(), O_RDONLY | O_CLOEXEC));
    // The check follows the open: the file may have been rotated in between.
    if (CurrentSegment(directory_, stem_) == segment) {
      return {segment, static_cast<uint64_t>(SizeOf(fd))};
    }
  }
}

void LogReader::SeekTail(int count) {
  const Position end = newest();
  if (count <= 0) return StartAt(end);
  SeekBefore(end, count);
}

void LogReader::SeekBefore(LogPosition end, int count) {
  const uint32_t oldest = OldestSegment(directory_, stem_);
  int64_t wanted = int64_t{count} + 1;  // line ends to pass, including that of the last line
  bool at_end = true;
  for (uint32_t segment = end.segment; segment >= oldest; --segment) {
    OpenSegment(segment);
    const base::UniqueFd fd = std::move(log_);
    int64_t position = SizeOf(fd);
    if (segment == end.segment) position = std::min(position, static_cast<int64_t>(end.offset));
    std::string block;
    while (position > 0) {
      const int64_t length = std::min<int64_t>(position, kReadBytes);
      block.resize(static_cast<size_t>(length));
      if (::pread(fd.get(), block.data(), block.size(), position - length) != length) break;
      position -= length;
      if (at_end && block.back() != '\n') --wanted;  // the last line is incomplete
      at_end = false;
      for (size_t i = block.size(); i-- > 0;) {
        if (block[i] == '\n' && --wanted == 0) {
          StartAt({segment, static_cast<uint64_t>(position) + i + 1});
          return;
        }
      }
    }
  }
  StartAt({oldest, 0});
}

void LogReader::SeekTime(absl::Time since) {
  LoadIndex();
  const int64_t micros = absl::ToUnixMicros(since);
  const auto first =
      std::partition_point(index_.begin(), index_.end(),
                           [micros](const IndexRecord& r) { return r.unix_micros < micros; });
  if (first == index_.end()) return StartAt(newest());
  const uint32_t oldest = OldestSegment(directory_, stem_);
  const Position start =
      first->segment < oldest ? Position{oldest, 0} : Position{first->segment, first->offset};
  StartAt(start);
  // A record may point into the middle of a line. Reading starts with the next line then.
  char before = '\n';
  if (start.offset > 0 && OpenSegment(start.segment) == Found::kOpen) {
    (void)!::pread(log_.get(), &before, 1, static_cast<off_t>(start.offset - 1));
  }
  if (before != '\n') Next();
}

MergedLogReader::MergedLogReader(const std::string& directory,
                                 const std::vector<cluster::TaskId>& tasks)
    : directory_(directory), inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  ::inotify_add_watch(inotify_.get(), directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_FROM);
  for (const cluster::TaskId& task : tasks) AddTask(task);
}

void MergedLogReader::AddTask(const cluster::TaskId& task) {
  const bool known = std::any_of(sources_.begin(), sources_.end(),
                                 [&](const Source& s) { return s.reader->task() == task; });
  if (!known) sources_.push_back({std::make_unique<LogReader>(directory_, task), std::nullopt});
}

void MergedLogReader::Acknowledge() {
  for (Source& source : sources_) source.exhausted = false;
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
    // Without `exhausted`, every line would cost a read of each idle source.
    if (!source.head.has_value() && !source.exhausted) {
      source.head = source.reader->Next();
      source.exhausted = !source.head.has_value();
    }
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

std::vector<std::string> LastLines(const std::string& directory, const cluster::TaskId& task,
                                   int count) {
  constexpr size_t kMaxShownBytes = 2000;
  LogReader reader(directory, task);
  reader.SeekTail(count);
  std::vector<std::string> lines;
  while (auto line = reader.Next())
    lines.push_back(base::Printable(line->text.substr(0, kMaxShownBytes)));
  if (auto line = reader.TakePartial())
    lines.push_back(base::Printable(line->text.substr(0, kMaxShownBytes)));
  if (lines.size() > static_cast<size_t>(count)) lines.erase(lines.begin(), lines.end() - count);
  return lines;
}

}  // namespace muster::supervise
