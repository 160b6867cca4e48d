// The working directory of a job, sent to its bucket: what was sent before is not sent again.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/vertex/archive.h"
#include "storage/storage.h"

namespace muster::vertex {

// Small files share archives, and each larger one has its own: who changes one file sends little
// more than that. An archive is called after what is in it, so that one look tells whether to send
// it:
//   gs://BUCKET/muster_packages/SHA256.tar.gz
struct Sent {
  std::vector<std::string> packages;  // URLs, for Unpack
  int64_t bytes = 0;                  // of files in packages that were not there before
};

struct PackageOptions {
  std::string root;
  std::string bucket;
  bool again = false;  // whether or not they are there
};

// `files` is a listing of the root with its hashes. What fails leaves nothing half-sent.
absl::StatusOr<Sent> SendPackages(storage::Storage& storage, const PackageOptions& options,
                                  const std::vector<WorkFile>& files);

// Below a folder, which exists. DataLoss when a package does not hold what its name stands for.
absl::Status Unpack(storage::Storage& storage, const std::vector<std::string>& packages,
                    const std::string& folder);

}  // namespace muster::vertex
