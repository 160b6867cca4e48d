// Advisory locks between processes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"

namespace muster::base {

// An flock() on a file, which is created if absent. Held until the object is destroyed or the
// process ends: the kernel releases the lock of a process that dies, so it is never stale. Does not
// exclude other threads of a process that share the object.
class FileLock {
 public:
  enum class Mode { kExclusive, kShared };
  struct WaitOptions {
    absl::Duration timeout;
    Mode mode = Mode::kExclusive;
    std::function<bool()> cancelled;  // polled while waiting; null = never
  };

  // Waits for the lock. Returns Unavailable if another process still holds it after the timeout, or
  // Cancelled.
  static absl::StatusOr<FileLock> Acquire(const std::string& path, const WaitOptions& options);
  static absl::StatusOr<FileLock> Acquire(const std::string& path, absl::Duration timeout) {
    return Acquire(path, WaitOptions{.timeout = timeout});
  }
  // Does not wait. Returns nullopt if the lock is held elsewhere.
  static absl::StatusOr<std::optional<FileLock>> Try(const std::string& path,
                                                     Mode mode = Mode::kExclusive);
  // The same for an existing folder, in which no lock file is left.
  static absl::StatusOr<std::optional<FileLock>> TryFolder(const std::string& path);

  // Replaces the content of the lock file with a description of its holder. Best effort: a full
  // disk is ignored.
  void Describe(absl::string_view holder);

 private:
  static absl::StatusOr<std::optional<FileLock>> Lock(UniqueFd fd, Mode mode,
                                                      const std::string& path);
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster::base
