// Reads task logs as lines with times: one task, or several merged in order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "cluster/task_id.h"
#include "launch/log_format.h"

namespace muster {

struct LogLine {
  TaskId task;
  int attempt = 0;
  absl::Time time;   // to about 0.1 s
  std::string text;  // without its end; of a line rewritten with \r, the last version
};

// A place in a log.
struct LogPosition {
  uint32_t segment = 1;
  uint64_t offset = 0;
  auto operator<=>(const LogPosition&) const = default;
};

// Bytes that a task wrote at about one time, in one attempt.
struct LogPiece {
  int attempt = 0;
  absl::Time time;
  std::string bytes;
  LogPosition next;  // where it ends
};

// The log of one task, from its oldest byte or from a place chosen by a Seek. Follows rotation.
// Lines longer than 64 KiB come in pieces. A log that does not exist yet is empty. Not thread-safe.
class LogReader {
 public:
  LogReader(std::string directory, TaskId task);

  // From the last `count` lines on.
  void SeekTail(int count);
  // From what was written at `since` or later.
  void SeekTime(absl::Time since);

  // From there on.
  void Seek(LogPosition position) { StartAt(position); }

  // The next bytes as they were written, when there are any by now; not to be mixed with lines.
  std::optional<LogPiece> NextPiece();
  // The next whole line, when there is one by now.
  std::optional<LogLine> Next();
  // What stands after the last line end so far, taken as a line: for the end of a log, and for
  // progress bars that rewrite a line for minutes. nullopt when there is nothing new.
  std::optional<LogLine> TakePartial();

  const TaskId& task() const { return task_; }

 private:
  using Position = LogPosition;
  // Where in the log a byte of buffer_ stands; those after it follow there too.
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
  Position PositionOf(size_t index) const;  // of a byte in buffer_
  void StartAt(Position position);
  void SeekEnd();
  void LoadIndex();
  IndexRecord MarkAt(Position position);
  LogLine MakeLine(Position start, std::string text);

  const std::string directory_;
  const TaskId task_;
  const std::string stem_;

  UniqueFd log_;
  Position read_;  // of the next byte to read
  std::string buffer_;
  std::vector<Border> borders_;  // one a segment
  size_t begin_ = 0;             // what stands before it in buffer_ was returned
  size_t scanned_ = 0;           // what stands before it in buffer_ holds no further line end
  UniqueFd index_fd_;
  std::vector<IndexRecord> index_;
  size_t index_cursor_ = 0;
  bool index_is_old_ = true;  // bytes were read since it was
};

// The output of several tasks in order of time, wherever a platform keeps it.
class LogStream {
 public:
  virtual ~LogStream() = default;
  virtual void SeekTail(int count) = 0;  // the last `count` lines of all tasks together
  virtual void SeekTime(absl::Time since) = 0;
  // A task that joined the job later, from its start. A known one is left as it is.
  virtual void AddTask(const TaskId& task) = 0;
  // The next line of what was there at the last Acknowledge(), or came since; lines still to come
  // may be older by a moment.
  virtual std::optional<LogLine> Next() = 0;
  // What stands after the last line end of each task.
  virtual std::vector<LogLine> TakePartials() = 0;
  // Readable when there may be something new. Acknowledge() before reading on.
  virtual int fd() const = 0;
  virtual void Acknowledge() = 0;
};

// Merges log files of this machine.
class MergedLogReader final : public LogStream {
 public:
  MergedLogReader(const std::string& directory, const std::vector<TaskId>& tasks);

  void SeekTail(int count) override;
  void SeekTime(absl::Time since) override;
  void AddTask(const TaskId& task) override;
  std::optional<LogLine> Next() override;
  std::vector<LogLine> TakePartials() override;
  int fd() const override { return inotify_.get(); }
  void Acknowledge() override;

 private:
  struct Source {
    std::unique_ptr<LogReader> reader;
    std::optional<LogLine> head;
    bool dry = false;  // had nothing more when it was last looked at, since Acknowledge()
  };
  const std::string directory_;
  UniqueFd inotify_;
  std::vector<Source> sources_;
  std::deque<LogLine> ready_;  // what SeekTail collected
};

// The last `count` lines of a task's log, made printable: for reports.
std::vector<std::string> LastLines(const std::string& directory, const TaskId& task, int count);

}  // namespace muster
