// The folder that a data set is converted into.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster::data {

// Files are written to a folder within it, and appear in it together. Unless they do, everything is
// as it was before: the destructor removes what was written, and the folders that Open() made.
class ConvertTarget {
 public:
  // Makes the folder, and those above it, if they are missing. FailedPrecondition while another
  // process has it open.
  static absl::StatusOr<ConvertTarget> Open(const std::string& folder);
  ConvertTarget(ConvertTarget&& other) noexcept;
  ConvertTarget& operator=(ConvertTarget&&) = delete;
  ~ConvertTarget();

  // Where to write; on the same file system.
  const std::string& staging() const { return staging_; }
  // Moves files from there to the folder, in place of those of the same names, and waits for the
  // disk. Called once, last.
  absl::Status Publish(const std::vector<std::string>& names);

 private:
  explicit ConvertTarget(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  UniqueFd lock_;
  std::string staging_;            // "": there is none
  std::vector<std::string> made_;  // folders, outermost first
};

}  // namespace muster::data
