// A folder for a limited time.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// A new folder, private to this user, that is removed with its content when the object is
// destroyed. A process that is killed leaves it behind.
class TemporaryFolder {
 public:
  // Creates a folder in `parent`, which is created if missing; "" = TMPDIR, else /tmp. Returns
  // DiskError().
  static absl::StatusOr<TemporaryFolder> Create(std::string parent = "");
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Returns the path of a file in it.
  std::string File(absl::string_view name) const;

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // "" after a move
};

}  // namespace muster::base
