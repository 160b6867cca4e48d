// Copies files between storages, several at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/storage.h"

namespace muster::storage {

struct CopyPair {
  FileInfo from;
  Url to;
};

struct CopyOptions {
  int parallel = 4;
  bool compare = true;  // false: always replace the target, even if its content is the same
  // Called a few times a second on the calling thread. Returning false stops the copy.
  std::function<bool(int64_t done_bytes, int done_files)> progress;
};

struct CopyResult {
  int copied = 0;
  int skipped = 0;  // the target existed with the same content
  int64_t copied_bytes = 0;
  std::vector<absl::Status> failures;  // one per file; other files are copied nevertheless
  bool stopped = false;                // by `progress`; no partial file is left
};

// Copies all pairs. Skips a target that exists with the same size and MD5. Checks the bytes read
// against the MD5 that the source reports, if any.
CopyResult CopyAll(Storage& storage, const std::vector<CopyPair>& pairs,
                   const CopyOptions& options);

// Does the same, and returns the first failure.
absl::Status CopyFiles(Storage& storage, const std::vector<CopyPair>& pairs,
                       const CopyOptions& options = {});

}  // namespace muster::storage
