// Locks between processes.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace muster {

// An advisory lock on a file, created when absent; held until this is destroyed or the process
// ends.
class FileLock {
 public:
  // Waits up to `patience`, then Unavailable.
  static absl::StatusOr<FileLock> Acquire(const std::string& path, absl::Duration patience);
  // nullopt when somebody else holds it.
  static absl::StatusOr<std::optional<FileLock>> Try(const std::string& path);

  // What the file says of its holder. A full disk is no reason to fail: then it says less.
  void Describe(absl::string_view holder);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster
