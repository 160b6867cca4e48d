// Buckets of Google Cloud Storage.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "storage/gs/client.h"

namespace muster::storage {

struct NewBucket {
  std::string name;
  std::string project;   // that pays for it
  std::string location;  // "us-central1"
};

// Makes the bucket when there is none of that name. PermissionDenied when it is somebody else's, or
// none may be made: the message says what to do.
absl::Status EnsureBucket(GsClient& client, const NewBucket& bucket);

}  // namespace muster::storage
