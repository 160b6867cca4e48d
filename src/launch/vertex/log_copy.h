// The output of a job's tasks, copied from Cloud Logging into their logs on this machine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "launch/log_writer.h"
#include "launch/vertex/client.h"
#include "launch/vertex/pools.h"

namespace muster::vertex {

// Writes each entry once, however late it comes, and however often the copying is cut and goes on,
// also by another process: which were taken is kept beside the logs. A line is
// "SEVERITY :: message". What the service itself says stands in the log of the task that leads. One
// at a time for a job. Not thread-safe.
class LogCopy {
 public:
  static absl::StatusOr<std::unique_ptr<LogCopy>> Open(const std::string& directory,
                                                       const Pools& pools,
                                                       LogWriter::Options options);

  // The time of the youngest that was taken; nullopt: none was.
  std::optional<absl::Time> latest() const { return latest_; }
  size_t taken() const { return taken_.size(); }
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
  absl::Status SaveTaken();
  absl::StatusOr<LogWriter*> WriterFor(const TaskId& task);

  const std::string directory_;
  const Pools pools_;
  const LogWriter::Options options_;
  std::optional<absl::Time> latest_;
  std::unordered_set<uint64_t> taken_;  // fingerprints of entries
  std::vector<uint64_t> unsaved_;
  std::map<std::string, Mark> marks_;  // by task
  std::map<TaskId, std::unique_ptr<LogWriter>> writers_;
};

// The lines of an entry, each with its severity.
std::vector<std::string> LinesOf(const LogEntry& entry, absl::string_view mark = "");

}  // namespace muster::vertex
