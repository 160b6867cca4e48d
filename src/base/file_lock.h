// Advisory locks between processes.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace muster {

// An flock() on a file, which is created if absent. Held until the object is destroyed or the
// process ends. Does not exclude other threads of a process that share the object.
class FileLock {
 public:
  // Waits for the lock. Returns Unavailable if another process still holds it after `timeout`.
  static absl::StatusOr<FileLock> Acquire(const std::string& path, absl::Duration timeout);
  // Does not wait. Returns nullopt if the lock is held elsewhere.
  static absl::StatusOr<std::optional<FileLock>> Try(const std::string& path);

  // Replaces the content of the lock file with a description of its holder. Best effort: a full
  // disk is ignored.
  void Describe(absl::string_view holder);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster
