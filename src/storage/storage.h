// Which storage a URL is kept in.
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

// All of them, each set up when it is first asked for, from the environment that `variables` gives.
// Thread-safe.
class Storage {
 public:
  explicit Storage(Variables variables = ProcessVariables());
  ~Storage();

  // Lives as long as this does. Unimplemented for a scheme that has no storage yet; else what
  // setting it up fails with.
  absl::StatusOr<FileSystem*> For(const Url& url);

 private:
  const Variables variables_;
  const std::unique_ptr<FileSystem> local_;
  const std::unique_ptr<FileSystem> memory_;
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<FileSystem>> remote_ ABSL_GUARDED_BY(mutex_);  // by scheme
};

// A file at a path or a URL, for what is written now and then. It is there whole, or not at all.
absl::Status WriteAt(const std::string& place, absl::string_view content);
// AlreadyExists when there is a file at a path or a URL.
absl::Status CheckIsFree(const std::string& place);

}  // namespace muster::storage
