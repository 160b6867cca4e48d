// The file history.db: opened, created, and moved aside and rebuilt if damaged.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/files/file_lock.h"
#include "history/database.h"

namespace muster::history {

struct HistoryOptions {
  // Called with one line for the user: that history.db was damaged or missing, and where the
  // damaged file is now. Must not call the history. May be empty.
  std::function<void(absl::string_view)> notice;
  absl::Duration busy_timeout = absl::Seconds(10);
  const base::Clock* clock = &base::Clock::Real();  // for the name of the damaged file
};

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// Every use holds history.lock shared; replacing the file takes it exclusively. So no process works
// on a file that is being moved, and if two processes find the damage, one repairs it and the other
// finds it repaired. Lock order: history.lock, then SQLite's write lock.
// Not thread-safe.
class HistoryFile {
 public:
  HistoryFile(std::string home, HistoryOptions options);
  ~HistoryFile();
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  // Calls `work` with the database that is currently at the path. If it is missing, or opening it
  // or `work` returns DataLoss, rebuilds the file and calls `work` once more.
  absl::Status Use(absl::FunctionRef<absl::Status(Database&)> work);

  // The identity of the file that Use() passes to `work`.
  const FileIdentity& identity() const { return identity_; }

 private:
  std::string LockPath() const;
  absl::StatusOr<base::FileLock> Acquire(base::FileLock::Mode mode);
  bool IsCurrent() const;
  absl::Status OpenExisting();
  absl::Status Repair();
  // Renames the damaged file and returns its new path, or "" if there was none. REQUIRES: exclusive
  // lock.
  absl::StatusOr<std::string> MoveAside();
  // Builds a database from the jobs' folders under another name and renames it into place. Returns
  // the number of jobs. REQUIRES: exclusive lock.
  absl::StatusOr<int> Create();

  const std::string home_;
  const std::string path_;
  const HistoryOptions options_;
  std::unique_ptr<Database> database_;
  FileIdentity identity_;  // of database_
};

}  // namespace muster::history
