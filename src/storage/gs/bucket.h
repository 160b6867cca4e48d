// Buckets of Google Cloud Storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "storage/gs/client.h"

namespace muster::storage {

struct NewBucket {
  std::string name;
  std::string project;   // the billed project
  std::string location;  // "us-central1"
};

// Creates the bucket if it does not exist, and returns whether it did not. Returns
// PermissionDenied, with the remedy, if it belongs to another project or the credentials may not
// create buckets.
absl::StatusOr<bool> EnsureBucket(GsClient& client, const NewBucket& bucket);

}  // namespace muster::storage
