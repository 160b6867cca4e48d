// Copies the output of a task's pods into its log on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "supervise/log/log_writer.h"

namespace muster::kubernetes {

// One run of a container.
struct LogSource {
  std::string pod;  // uid
  int restart = 0;  // restart count of the container in its pod
  bool operator==(const LogSource&) const = default;
};

// Receives a container's output with the timestamps of the API server and writes each line exactly
// once, across reconnections and restarts of this process: the position is stored in a file beside
// the log. At most one LogCopy may be open for a log. Not thread-safe.
class LogCopy {
 public:
  static absl::StatusOr<std::unique_ptr<LogCopy>> Open(const std::string& directory,
                                                       const cluster::TaskId& task,
                                                       supervise::LogWriter::Options options);

  // Returns the source that was begun last.
  const LogSource& source() const { return state_.source; }
  // Returns true if all output of `source` has been copied.
  bool IsComplete(const LogSource& source) const {
    return state_.complete && state_.source == source;
  }
  // Starts to receive the output of `source`, which must be requested from since() on. `attempt` is
  // the number of the task's attempt.
  void Begin(const LogSource& source, int attempt);
  // Returns the time of the last line written, or InfinitePast if there is none.
  absl::Time since() const;
  // Receives the next bytes; line boundaries do not matter. Returns an error if the log cannot be
  // written; bytes that were not saved will be requested again.
  absl::Status Take(absl::string_view bytes);
  // Ends the connection. `complete` means that the container has ended and no output will follow.
  absl::Status End(bool complete);

 private:
  struct State {
    LogSource source;
    absl::Time time = absl::InfinitePast();  // of the last line
    int64_t lines = 0;                       // number of lines with exactly that time
    bool complete = false;
    uint32_t segment = 1;  // position in the log that matches this state
    int64_t offset = 0;
  };

  LogCopy(std::string path, State state, std::unique_ptr<supervise::LogWriter> writer)
      : path_(std::move(path)), state_(std::move(state)), writer_(std::move(writer)) {}
  static State Load(const std::string& path);
  absl::Status Save();
  absl::Status TakeLine(absl::string_view line);

  const std::string path_;
  State state_;
  std::unique_ptr<supervise::LogWriter> writer_;
  std::string partial_line_;  // incomplete last line
  int64_t to_skip_ = 0;       // lines with time skip_until_ that were written before
  absl::Time skip_until_ = absl::InfinitePast();
  absl::Time saved_ = absl::InfinitePast();
};

}  // namespace muster::kubernetes
