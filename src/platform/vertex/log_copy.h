// Copies the output of a job's tasks from Cloud Logging into their logs on this machine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "platform/vertex/client.h"
#include "platform/vertex/pools.h"
#include "supervise/log/log_writer.h"

namespace muster::vertex {

// Writes each entry exactly once, even if it arrives late, across interruptions and restarts of
// this process: fingerprints of the entries written are stored beside the logs. A line has the form
// "SEVERITY :: message". Messages of the service itself go to the log of the leading task. At most
// one LogCopy may be open for a job. Not thread-safe.
class LogCopy {
 public:
  static absl::StatusOr<std::unique_ptr<LogCopy>> Open(const std::string& directory,
                                                       const Pools& pools,
                                                       supervise::LogWriter::Options options);

  // Returns the time of the youngest entry written, or nullopt if there is none.
  std::optional<absl::Time> latest() const { return latest_; }
  // Returns the number of entries written.
  size_t taken() const { return taken_.size(); }
  // Writes an entry unless it is a duplicate. Returns an error if the log cannot be written.
  // Entries that were not saved must be requested again.
  absl::Status Take(const LogEntry& entry);
  // Makes the entries written so far durable.
  absl::Status Save();

 private:
  // A position in a log.
  struct Mark {
    uint32_t segment = 1;
    int64_t offset = 0;
  };

  LogCopy(std::string directory, Pools pools, supervise::LogWriter::Options options);
  void Load();
  absl::Status TruncateToSaved() const;
  absl::Status SaveTaken();
  absl::StatusOr<supervise::LogWriter*> WriterFor(const cluster::TaskId& task);

  const std::string directory_;
  const Pools pools_;
  const supervise::LogWriter::Options options_;
  std::optional<absl::Time> latest_;
  std::unordered_set<uint64_t> taken_;  // fingerprints of entries
  std::vector<uint64_t> unsaved_;
  std::map<std::string, Mark> marks_;  // by task
  std::map<cluster::TaskId, std::unique_ptr<supervise::LogWriter>> writers_;
};

// Returns the lines of an entry, each as "SEVERITY :: `mark` text".
std::vector<std::string> LinesOf(const LogEntry& entry, absl::string_view mark = "");

}  // namespace muster::vertex
