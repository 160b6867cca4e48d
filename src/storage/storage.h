// Selects the FileSystem that a URL belongs to.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/variables.h"
#include "storage/file_system.h"

namespace muster::storage {

// Owns one FileSystem per scheme. Each is created on first use, configured from the environment
// variables that `variables` returns. Thread-safe.
class Storage {
 public:
  explicit Storage(base::Variables variables = base::ProcessVariables());
  ~Storage();

  // Returns the FileSystem of the URL's scheme, which this object owns. Returns Unimplemented for
  // an unknown scheme, or the error of creating the FileSystem (missing settings, for example).
  absl::StatusOr<FileSystem*> For(const Url& url);

 private:
  const base::Variables variables_;
  const std::unique_ptr<FileSystem> local_;
  const std::unique_ptr<FileSystem> memory_;
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<FileSystem>> remote_ ABSL_GUARDED_BY(mutex_);  // by scheme
};

// Writes a whole file to `location`, a path or a URL, atomically. Creates a Storage for the call:
// for files that are written rarely.
absl::Status WriteAt(const std::string& location, absl::string_view content);
// Returns AlreadyExists if there is a file at `location`, a path or a URL.
absl::Status CheckIsFree(const std::string& location);

}  // namespace muster::storage
