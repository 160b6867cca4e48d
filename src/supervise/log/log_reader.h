// Reads task logs as lines with times: of one task, or of several tasks merged in time order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "cluster/task_id.h"
#include "supervise/log/log_format.h"

namespace muster::supervise {

struct LogLine {
  cluster::TaskId task;
  int attempt = 0;
  absl::Time time;   // accurate to about 0.1 s; less so late in a long log
  std::string text;  // without the line end; the last version of a line rewritten with \r
};

// A position in a task's log.
struct LogPosition {
  uint32_t segment = 1;
  uint64_t offset = 0;
  auto operator<=>(const LogPosition&) const = default;
};

// A run of bytes of one attempt with a common time.
struct LogPiece {
  int attempt = 0;
  absl::Time time;
  std::string bytes;
  LogPosition next;  // position after the last byte
};

// Reads the log of one task, from its oldest byte or from the position of a Seek. Follows rotation,
// and skips segments that were deleted before they were read. Splits lines longer than 64 KiB.
// Treats a missing log as empty. Not thread-safe.
class LogReader {
 public:
  LogReader(std::string directory, cluster::TaskId task);

  // Positions the reader at the last `count` lines, or at the end if `count` is 0.
  void SeekTail(int count);
  // Positions the reader at the `count`-th line before `end`, or at the oldest line. An `end`
  // within a line counts as the end of that line.
  void SeekBefore(LogPosition end, int count);
  // Positions the reader at the first line that the index dates `since` or later.
  void SeekTime(absl::Time since);

  // Positions the reader at `position`, such as LogPiece::next.
  void Seek(LogPosition position) { StartAt(position); }

  // Returns the next bytes, or nullopt if there are none yet. Must not be mixed with Next().
  std::optional<LogPiece> NextPiece();
  // Returns the next complete line, or nullopt if there is none yet.
  std::optional<LogLine> Next();
  // Returns the bytes after the last line end as a line, or nullopt if there are none. For the end
  // of a log, and for progress bars that rewrite a line for minutes. REQUIRES: Next() has returned
  // nullopt.
  std::optional<LogLine> TakePartial();

  // Returns the position of the first byte that has not been returned.
  LogPosition position() const { return begin_ == buffer_.size() ? read_ : PositionOf(begin_); }
  // Returns the positions of the oldest byte that still exists, and after the newest one.
  LogPosition oldest() const { return {OldestSegment(directory_, stem_), 0}; }
  LogPosition newest() const;

  const cluster::TaskId& task() const { return task_; }

 private:
  using Position = LogPosition;
  // The log position of buffer_[at]. The bytes up to the next border follow it contiguously.
  struct Border {
    size_t at;
    Position position;
  };

  enum class Found { kOpen, kNotYet, kGone };
  Found OpenSegment(uint32_t segment);
  bool ReadMore();
  bool AdvanceSegment();
  bool IsRotated() const;
  void DropReturned();
  Position PositionOf(size_t index) const;  // of buffer_[index]
  void StartAt(Position position);
  void LoadIndex();
  IndexRecord MarkAt(Position position);
  LogLine MakeLine(Position start, std::string text);

  const std::string directory_;
  const cluster::TaskId task_;
  const std::string stem_;

  base::UniqueFd log_;
  Position read_;  // position of the next byte to read from the file
  std::string buffer_;
  std::vector<Border> borders_;  // one per segment
  size_t begin_ = 0;             // bytes of buffer_ before it were returned
  size_t scanned_ = 0;           // bytes from begin_ to it contain no line end
  base::UniqueFd index_fd_;
  std::vector<IndexRecord> index_;
  size_t index_cursor_ = 0;
  bool index_is_old_ = true;  // log bytes were read since index_ was loaded
};

// The output of several tasks in time order, independent of where the platform stores it.
class LogStream {
 public:
  virtual ~LogStream() = default;
  virtual void SeekTail(int count) = 0;  // the last `count` lines of all tasks together
  virtual void SeekTime(absl::Time since) = 0;
  // Adds a task that joined the job later, from its start. Has no effect on a known task.
  virtual void AddTask(const cluster::TaskId& task) = 0;
  // Returns the next line, or nullopt if there is none; call Acknowledge() before the next try. A
  // line returned later may be slightly older.
  virtual std::optional<LogLine> Next() = 0;
  // Returns the bytes after the last line end of each task as lines.
  virtual std::vector<LogLine> TakePartials() = 0;
  // Becomes readable when there may be new output. Call Acknowledge() before reading on.
  virtual int fd() const = 0;
  virtual void Acknowledge() = 0;
};

// Merges log files on this machine, and watches their folder with inotify.
class MergedLogReader final : public LogStream {
 public:
  MergedLogReader(const std::string& directory, const std::vector<cluster::TaskId>& tasks);

  void SeekTail(int count) override;
  void SeekTime(absl::Time since) override;
  void AddTask(const cluster::TaskId& task) override;
  std::optional<LogLine> Next() override;
  std::vector<LogLine> TakePartials() override;
  int fd() const override { return inotify_.get(); }
  void Acknowledge() override;

 private:
  struct Source {
    std::unique_ptr<LogReader> reader;
    std::optional<LogLine> head;
    bool exhausted = false;  // had no line left since the last Acknowledge()
  };
  const std::string directory_;
  base::UniqueFd inotify_;
  std::vector<Source> sources_;
  std::deque<LogLine> ready_;  // collected by SeekTail
};

// Returns the last `count` lines of a task's log in printable form, for reports.
std::vector<std::string> LastLines(const std::string& directory, const cluster::TaskId& task,
                                   int count);

}  // namespace muster::supervise
