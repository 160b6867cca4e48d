// history.db as a file: found, created, and when it is damaged moved aside and made anew.
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
#include "base/unique_fd.h"
#include "history/database.h"

namespace muster {

struct HistoryOptions {
  // Told what the user should know, one line: that history.db was damaged, and where it is now.
  // Must not call the history. May be empty.
  std::function<void(absl::string_view)> notice;
  absl::Duration busy_timeout = absl::Seconds(10);
  const Clock* clock = &Clock::Real();  // names the damaged file
};

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// Every use holds history.lock shared; replacing the file takes it exclusively. So nobody works on
// a file that is being moved, and of two processes that find the damage one repairs and the other
// finds it repaired. Not thread-safe.
class HistoryFile {
 public:
  HistoryFile(std::string home, HistoryOptions options);
  ~HistoryFile();
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  // Calls `work` with the file that is at the path now. When opening it or `work` finds it damaged
  // (or it is missing), the file is made anew and `work` called once more.
  absl::Status Use(absl::FunctionRef<absl::Status(Database&)> work);

  // The file that `work` is called with.
  const FileIdentity& identity() const { return identity_; }

 private:
  enum class LockMode { kShared, kExclusive };
  class Lock;

  absl::StatusOr<Lock> Acquire(LockMode mode);
  bool IsCurrent() const;
  absl::Status OpenExisting();
  // Closes without touching the files beside the path.
  void Drop();
  absl::Status Repair();
  // Where the file is now; "" when there was none.
  absl::StatusOr<std::string> MoveAside();
  // A whole database under another name, with every job that has a folder; then renamed.
  absl::StatusOr<int> Create();

  const std::string home_;
  const std::string path_;
  const HistoryOptions options_;
  UniqueFd lock_file_;  // outlives database_, which closes under the lock
  std::unique_ptr<Database> database_;
  FileIdentity identity_;  // of database_
};

}  // namespace muster
