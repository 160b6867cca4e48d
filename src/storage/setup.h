// Prepares the storage of a URL before the first job: makes its bucket or folder, and checks that
// it can be written.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "storage/storage.h"

namespace muster::storage {

struct NewBucketOptions {
  std::string location;  // of a bucket: "europe-west4"; "" for the default of the storage
  std::string project;   // that pays for a bucket of Google's; "" for that of the credentials
};

// Makes the bucket of the URL, or the folder with its parents where storages have folders. Returns
// whether it is new. Returns the errors of FileSystem.
absl::StatusOr<bool> MakeBucketOrFolder(const Url& url, const NewBucketOptions& options,
                                        const base::Variables& variables);

// Returns whose credentials requests to the URL's storage have, for messages: "user alice",
// "serviceAccount:x@y of /etc/key.json". Contains no secret; sends no request to the storage.
// Returns Unauthenticated, with the remedy, if there are none.
absl::StatusOr<std::string> AccountOf(const Url& url, const base::Variables& variables);

// Writes a small file into the folder, or into the nearest one above it if storages have folders
// and this one does not exist; reads and removes it. The error of a missing permission contains the
// command that grants it.
absl::Status CheckWritable(Storage& storage, const Url& folder, const base::Variables& variables);

}  // namespace muster::storage
