// The output of a job's tasks, copied from Cloud Logging into their logs on this machine.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "launch/log_writer.h"
#include "launch/vertex/client.h"
#include "launch/vertex/pools.h"

namespace muster::vertex {

// Takes entries in the order of (time, insert id) and writes each once, however often the copying
// is cut and goes on, also by another process: how far it came is kept beside the logs. A line is
// "SEVERITY :: message". What the service itself says stands in the log of the task that leads. One
// at a time for a job. Not thread-safe.
class LogCopy {
 public:
  static absl::StatusOr<std::unique_ptr<LogCopy>> Open(const std::string& directory,
                                                       const Pools& pools,
                                                       LogWriter::Options options);

  const LogCursor& cursor() const { return cursor_; }  // the last that was taken
  // An error when the log cannot be written: what was not saved comes again.
  absl::Status Take(const LogEntry& entry);
  absl::Status Save();

 private:
  struct Mark {
    uint32_t segment = 1;
    int64_t offset = 0;
  };

  LogCopy(std::string directory, Pools pools, LogWriter::Options options);
  void Load();
  absl::Status CutBack() const;
  absl::StatusOr<LogWriter*> WriterFor(const TaskId& task);

  const std::string directory_;
  const Pools pools_;
  const LogWriter::Options options_;
  LogCursor cursor_;
  std::map<std::string, Mark> marks_;  // by task
  std::map<TaskId, std::unique_ptr<LogWriter>> writers_;
};

}  // namespace muster::vertex
