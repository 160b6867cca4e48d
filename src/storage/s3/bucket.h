// Buckets of S3.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "storage/s3/client.h"

namespace muster::storage {

// Creates the bucket in the client's region if it does not exist, and returns whether it did not.
// Returns PermissionDenied, with the remedy, if it belongs to another account or the credentials
// may not create buckets.
absl::StatusOr<bool> EnsureS3Bucket(S3Client& client, const std::string& name);

}  // namespace muster::storage
