// The output of a task's pods, copied into its log on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "launch/log_writer.h"

namespace muster::kubernetes {

// One run of a container.
struct LogSource {
  std::string pod;  // its uid
  int restart = 0;  // of the container in its pod
  bool operator==(const LogSource&) const = default;
};

// Takes a container's output as the API server sends it with time stamps, and writes each line
// once, however often it is cut and goes on, also by another process: how far it came is kept
// beside the log. One at a time for a log. Not thread-safe.
class LogCopy {
 public:
  static absl::StatusOr<std::unique_ptr<LogCopy>> Open(const std::string& directory,
                                                       const TaskId& task,
                                                       LogWriter::Options options);

  const LogSource& source() const { return state_.source; }  // the last
  // Whether all of it is here.
  bool IsComplete(const LogSource& source) const {
    return state_.complete && state_.source == source;
  }
  // What comes from now on is the source's, from since() on. `attempt` counts the task's.
  void Begin(const LogSource& source, int attempt);
  absl::Time since() const;  // InfinitePast: from its start
  // In any pieces. An error when the log cannot be written: what was not taken comes again.
  absl::Status Take(absl::string_view bytes);
  // The connection is over. `complete`: the container has ended, and nothing more will come.
  absl::Status End(bool complete);

 private:
  struct State {
    LogSource source;
    absl::Time time = absl::InfinitePast();  // of the last line
    int64_t lines = 0;                       // that had that very time
    bool complete = false;
    uint32_t segment = 1;  // of the log, and how much of it was written then
    int64_t offset = 0;
  };

  LogCopy(std::string path, State state, std::unique_ptr<LogWriter> writer)
      : path_(std::move(path)), state_(std::move(state)), writer_(std::move(writer)) {}
  static State Load(const std::string& path);
  absl::Status Save();
  absl::Status TakeLine(absl::string_view line);

  const std::string path_;
  State state_;
  std::unique_ptr<LogWriter> writer_;
  std::string begun_;    // a line that has no end yet
  int64_t to_skip_ = 0;  // lines of state_.time that come again
  absl::Time skip_until_ = absl::InfinitePast();
  absl::Time saved_ = absl::InfinitePast();
};

}  // namespace muster::kubernetes
