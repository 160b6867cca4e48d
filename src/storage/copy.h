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
  bool compare = true;  // false: a file that is at its end already is replaced, whatever it holds
  // Called a few times a second by the calling thread. False: stop.
  std::function<bool(int64_t done_bytes, int done_files)> progress;
};

struct CopyResult {
  int copied = 0;
  int skipped = 0;  // were there, with the same content
  int64_t copied_bytes = 0;
  std::vector<absl::Status> failures;  // of single files; the others are copied all the same
  bool stopped = false;                // nothing half-done is left
};

// A file that is at its end already, with the same size and MD5, is left alone. What comes is held
// to the checksum that its storage knows.
CopyResult CopyAll(Storage& storage, const std::vector<CopyPair>& pairs,
                   const CopyOptions& options);

// The same for files of which none may be missing: the first failure.
absl::Status CopyFiles(Storage& storage, const std::vector<CopyPair>& pairs,
                       const CopyOptions& options = {});

}  // namespace muster::storage
