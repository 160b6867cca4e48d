// Writes a task's output to its log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "cluster/task_id.h"

namespace muster {

// Moves bytes from pipes to the log inside the kernel (splice). Not thread-safe.
class LogWriter {
 public:
  struct Options {
    int64_t rotate_bytes = int64_t{256} << 20;
    int keep = 8;  // rotated segments
  };

  // Continues the log where an earlier attempt left it.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Open(const std::string& directory,
                                                         const TaskId& task, Options options);

  // Takes back what was written behind a place, as segment() and offset() told it. What is in an
  // earlier segment by now stays.
  static absl::Status CutBack(const std::string& directory, const TaskId& task, uint32_t segment,
                              int64_t offset);

  // What comes from now on belongs to `attempt`.
  void BeginAttempt(int attempt) {
    attempt_ = static_cast<uint32_t>(attempt);
    last_mark_ = absl::InfinitePast();
  }

  enum class Outcome { kMoved, kEmpty, kEnd };
  // Moves what the (non-blocking) pipe holds, a bounded amount. When the disk does not take it, the
  // output is thrown away and counted, so that the task does not block: lost_bytes().
  Outcome Drain(int pipe, absl::Time now);

  // Appends output that came at `time`. An error when the disk does not take it: some of it may be
  // there then.
  absl::Status Write(absl::string_view bytes, absl::Time time);

  uint32_t segment() const { return segment_; }
  int64_t offset() const { return offset_; }  // within the segment
  int64_t written_bytes() const { return written_; }
  int64_t lost_bytes() const { return lost_; }
  // Why output was lost the last time; OK when the last write went through.
  const absl::Status& status() const { return status_; }
  absl::Time last_output() const { return last_output_; }

 private:
  LogWriter(std::string directory, std::string stem, Options options)
      : directory_(std::move(directory)), stem_(std::move(stem)), options_(options) {}

  absl::Status OpenSegment();
  void RotateIfFull();
  void DropOldSegments();
  void Mark(absl::Time now);
  Outcome Discard(int pipe, absl::Time now);

  const std::string directory_;
  const std::string stem_;
  const Options options_;
  UniqueFd log_;
  UniqueFd index_;
  uint32_t segment_ = 1;
  uint32_t attempt_ = 0;
  int64_t offset_ = 0;  // within the segment
  int64_t written_ = 0;
  int64_t lost_ = 0;
  absl::Status status_;
  absl::Time last_mark_ = absl::InfinitePast();
  absl::Time last_output_ = absl::InfinitePast();
  absl::Time retry_at_ = absl::InfinitePast();
};

}  // namespace muster
