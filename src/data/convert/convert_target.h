// The folder that a data set is converted into.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_lock.h"

namespace muster::data {

// Collects files in a staging folder within the target and publishes them together. Without
// Publish(), the destructor removes the staged files and the folders that Open() created.
class ConvertTarget {
 public:
  // Creates the folder and its parents if missing, and locks the folder. Returns
  // FailedPrecondition if another process has it locked.
  static absl::StatusOr<ConvertTarget> Open(const std::string& folder);
  ConvertTarget(ConvertTarget&& other) noexcept;
  ConvertTarget& operator=(ConvertTarget&&) = delete;
  ~ConvertTarget();

  // Returns the staging folder, which is on the same file system.
  const std::string& staging() const { return staging_; }
  // Moves staged files to the folder, replacing files of the same names, and flushes to the disk.
  // REQUIRES: called at most once, last.
  absl::Status Publish(const std::vector<std::string>& names);

 private:
  explicit ConvertTarget(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::optional<base::FileLock> lock_;
  std::string staging_;               // "" after a move
  std::vector<std::string> created_;  // folders, outermost first
};

}  // namespace muster::data
