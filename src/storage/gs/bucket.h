// Buckets of Google Cloud Storage.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "storage/gs/client.h"

namespace muster::storage {

struct NewBucket {
  std::string name;
  std::string project;   // the billed project
  std::string location;  // "us-central1"
};

// Creates the bucket if it does not exist. Returns PermissionDenied, with the remedy, if it belongs
// to somebody else or the credentials may not create buckets.
absl::Status EnsureBucket(GsClient& client, const NewBucket& bucket);

}  // namespace muster::storage
