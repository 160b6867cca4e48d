// Writes a task's output to its log; see log_format.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "cluster/task_id.h"

namespace muster::supervise {

// Moves bytes from pipes to the log inside the kernel (splice). It must be the only writer of the
// log. Not thread-safe.
class LogWriter {
 public:
  struct Options {
    int64_t rotate_bytes = int64_t{256} << 20;
    int keep = 8;  // number of rotated segments to keep
  };

  // Creates the log, or continues an existing one.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Open(const std::string& directory,
                                                         const cluster::TaskId& task,
                                                         Options options);

  // Truncates the log to a position obtained from segment() and offset(). Has no effect if that
  // segment was rotated since. REQUIRES: no LogWriter has the log open.
  static absl::Status Truncate(const std::string& directory, const cluster::TaskId& task,
                               uint32_t segment, int64_t offset);

  // Attributes the output from now on to `attempt`.
  void BeginAttempt(int attempt) {
    attempt_ = static_cast<uint32_t>(attempt);
    last_mark_ = absl::InfinitePast();
  }

  enum class Outcome { kMoved, kEmpty, kEnd };
  // Moves a bounded amount of bytes from the non-blocking `pipe` to the log. Returns kEmpty if the
  // pipe is empty, and kEnd at end of file. If the disk does not take the bytes, discards them and
  // adds them to lost_bytes(), so that the task does not block.
  Outcome Drain(int pipe, absl::Time now);

  // Appends output that was produced at `time`. On error, part of it may have been written.
  absl::Status Write(absl::string_view bytes, absl::Time time);

  uint32_t segment() const { return segment_; }
  int64_t offset() const { return offset_; }  // within the segment
  int64_t written_bytes() const { return written_; }
  int64_t lost_bytes() const { return lost_; }
  // Returns the error of the last write, or OK if it succeeded.
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
  base::UniqueFd log_;
  base::UniqueFd index_;
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

}  // namespace muster::supervise
